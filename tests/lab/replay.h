#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/autograd.h>
#include <torch/utils.h>

#include "capstan/lab/data.h"
#include "capstan/lab/model.h"

// References for trained weights, in one process: plain loops of autograd and w - rate · gradient, which
// repeat the updates that servers have recorded (updates.json).
namespace capstan::lab {

using Tensors = std::vector<at::Tensor>;

inline Tensors copies(const Tensors& of) {
  Tensors list;
  for (const auto& tensor : of) list.push_back(tensor.detach().clone());
  return list;
}

inline Tensors operator+(const Tensors& a, const Tensors& b) {
  Tensors sum;
  for (std::size_t i = 0; i < a.size(); ++i) sum.push_back(a[i] + b[i]);
  return sum;
}
inline Tensors operator*(double factor, const Tensors& a) {
  Tensors product;
  for (const auto& tensor : a) product.push_back(factor * tensor);
  return product;
}
inline Tensors operator*(const Tensors& a, const Tensors& b) {
  Tensors product;
  for (std::size_t i = 0; i < a.size(); ++i) product.push_back(a[i] * b[i]);
  return product;
}
inline Tensors operator-(const Tensors& a, const Tensors& b) {
  return a + -1.0 * b;
}

// The largest difference of an element.
inline double distance(const Tensors& a, const Tensors& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, (a[i] - b[i]).abs().max().item<double>());
  return largest;
}

// What trainers train, and how batches are dealt to them.
struct Work {
  std::shared_ptr<Model> model;  // has its initial weights, and no sparse gradients
  std::shared_ptr<Data> data;
  std::uint64_t trainers = 1, batch_size = 1;
  std::uint64_t steps = 1;  // of each trainer in an epoch
  bool uses_l1 = false;     // as the loss; else cross-entropy
};

// The batches of trainers, and their gradients by autograd.
class Plain {
 public:
  explicit Plain(Work work) : work_(std::move(work)), initial_(copies(work_.model->parameters())) {}

  const Work& work() const { return work_; }
  const Tensors& initial() const { return initial_; }
  std::vector<std::string> names() const { return work_.model->named_parameters().keys(); }
  bool is_table(std::size_t parameter) const { return names()[parameter] == "embedding.weight"; }

  // Of a trainer's step, at these weights.
  Tensors gradient(std::uint64_t trainer, std::uint64_t step, const Tensors& weights) {
    const auto parameters = work_.model->parameters();
    {
      const torch::NoGradGuard no_grad;
      for (std::size_t i = 0; i < weights.size(); ++i) parameters[i].copy_(weights[i]);
    }
    const auto [input, target] = work_.data->batch(samples(trainer, step % work_.steps));
    return copies(torch::autograd::grad({loss(work_.model->forward(input), target)}, parameters));
  }

  // The mean of all trainers' gradients.
  Tensors mean_gradient(std::uint64_t step, const Tensors& weights) {
    auto sum = gradient(0, step, weights);
    for (std::uint64_t i = 1; i < work_.trainers; ++i) sum = sum + gradient(i, step, weights);
    return 1.0 / static_cast<double>(work_.trainers) * sum;
  }

  // The weights if all trainers' batches of a step make one update.
  Tensors trained_together(std::uint64_t epochs, double rate) {
    auto w = initial_;
    for (std::uint64_t step = 0; step < epochs * work_.steps; ++step) w = w - rate * mean_gradient(step, w);
    return w;
  }

 private:
  std::vector<std::uint32_t> samples(std::uint64_t trainer, std::uint64_t step) const {
    const auto first = (step * work_.trainers + trainer) * work_.batch_size;
    const auto end = std::min(first + work_.batch_size, static_cast<std::uint64_t>(work_.data->size()));
    std::vector<std::uint32_t> list;
    for (auto i = first; i < end; ++i) list.push_back(static_cast<std::uint32_t>(i));
    return list;
  }
  at::Tensor loss(const at::Tensor& output, const at::Tensor& target) const {
    if (work_.uses_l1) return (output - target).abs().mean();
    return -torch::log_softmax(output, 1).gather(1, target.unsqueeze(1)).mean();
  }

  const Work work_;
  const Tensors initial_;
};

// ---- recorded updates ----

struct Push {
  std::uint64_t worker = 0, number = 0, steps = 0, samples = 0, base = 0;
};
struct Update {
  std::uint64_t group = 0, version = 0;
  std::vector<Push> pushes;
};

inline std::vector<Update> updates_of(const nlohmann::json& file) {
  std::vector<Update> updates;
  for (const auto& u : file.at("updates")) {
    updates.push_back({u.at("group"), u.at("version"), {}});
    for (const auto& c : u.at("contributions"))
      updates.back().pushes.push_back(
          {c.at("worker"), c.at("push"), c.at("steps"), c.at("samples"), c.at("base")});
  }
  return updates;
}

inline double share_of_samples(const Update& update, const Push& push) {
  std::uint64_t samples = 0;
  for (const auto& each : update.pushes) samples += each.samples;
  return static_cast<double>(push.samples) / static_cast<double>(samples);
}

inline Tensors mean(const Update& update, const std::vector<Tensors>& of) {
  auto sum = 0.0 * of[0];
  for (std::size_t i = 0; i < of.size(); ++i) sum = sum + share_of_samples(update, update.pushes[i]) * of[i];
  return sum;
}

inline double staleness(const Update& update, const Push& push) {
  return static_cast<double>(update.version - 1 - push.base);
}

// The weights of one group of parameters: first the initial ones, then those after each of its updates.
// Those of other groups' parameters are unused.
using Versions = std::vector<Tensors>;

// ---- strategies that push gradients ----

// Repeats their updates. The table, if its gradient is sparse, is group 1.
class GradientReplay {
 public:
  // The change of the weights, w, by an update of these gradients, which were computed at `bases`.
  using Rule = std::function<Tensors(const Update&, const std::vector<Tensors>& gradients, const Tensors& w,
                                     const std::vector<Tensors>& bases)>;

  GradientReplay(Plain& plain, bool sparse, Rule rule)
      : plain_(plain), sparse_(sparse), rule_(std::move(rule)) {
    versions_.assign(sparse ? 2 : 1, {plain_.initial()});
  }

  // Returns the last weights.
  Tensors run(const std::vector<Update>& updates) {
    for (const auto& update : updates)
      for (const auto& push : update.pushes) bases_[{push.worker, push.number}][update.group] = push.base;
    for (const auto& update : updates) apply(update);
    Tensors last;
    for (std::size_t i = 0; i < plain_.initial().size(); ++i)
      last.push_back(versions_[group_of(i)].back()[i]);
    return last;
  }

  // By group.
  const std::vector<Versions>& versions() const { return versions_; }
  std::size_t group_of(std::size_t parameter) const { return sparse_ && plain_.is_table(parameter) ? 1 : 0; }

 private:
  void apply(const Update& update) {
    std::vector<Tensors> gradients, bases;
    for (const auto& push : update.pushes) {
      const auto& base = bases_.at({push.worker, push.number});
      Tensors weights;
      for (std::size_t i = 0; i < plain_.initial().size(); ++i)
        weights.push_back(versions_[group_of(i)].at(base.at(group_of(i)))[i]);
      bases.push_back(weights);
      gradients.push_back(plain_.gradient(push.worker, push.steps - 1, weights));
    }
    auto& versions = versions_[update.group];
    ASSERT_EQ(update.version, versions.size()) << "the updates of a group are in order";
    versions.push_back(versions.back() + rule_(update, gradients, versions.back(), bases));
  }

  Plain& plain_;
  const bool sparse_;
  const Rule rule_;
  std::vector<Versions> versions_;  // by group
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::map<std::uint64_t, std::uint64_t>> bases_;
};

inline GradientReplay::Rule step_with_mean(double rate) {
  return [=](const auto& update, const auto& gradients, const auto&, const auto&) {
    return -rate * mean(update, gradients);
  };
}

// async with a gradient corrected for its delay.
inline GradientReplay::Rule delay_compensation(double rate, double lambda) {
  return [=](const auto&, const auto& gradients, const auto& w, const auto& bases) {
    const auto& g = gradients[0];
    return -rate * (g + lambda * (g * g * (w - bases[0])));
  };
}

// The same with a λ that adapts to a running mean of squares.
inline GradientReplay::Rule adaptive_delay_compensation(double rate, double lambda) {
  return
      [=, square = Tensors()](const auto&, const auto& gradients, const auto& w, const auto& bases) mutable {
        const auto& g = gradients[0];
        square = square.empty() ? 0.05 * (g * g) : 0.95 * square + 0.05 * (g * g);
        Tensors change;
        for (std::size_t i = 0; i < g.size(); ++i)
          change.push_back(-rate *
                           (g[i] + lambda / (square[i] + 1e-7).sqrt() * g[i] * g[i] * (w[i] - bases[0][i])));
        return change;
      };
}

// ---- strategies that use local steps ----

// Repeats the updates of those whose workers continue with the servers' weights.
class LocalReplay {
 public:
  // The new weights from w and each push's local weights and the weights that they began with.
  using Rule = std::function<Tensors(const Update&, const std::vector<Tensors>& local, const Tensors& w,
                                     const std::vector<Tensors>& bases)>;

  LocalReplay(Plain& plain, double rate, Rule rule) : plain_(plain), rate_(rate), rule_(std::move(rule)) {}

  // Returns the last weights.
  Tensors run(const std::vector<Update>& updates) {
    versions_ = {plain_.initial()};
    std::map<std::uint64_t, std::uint64_t> steps;  // by worker, up to its last push
    for (const auto& update : updates) {
      std::vector<Tensors> local, bases;
      for (const auto& push : update.pushes) {
        bases.push_back(versions_.at(push.base));
        auto x = bases.back();
        for (auto& step = steps[push.worker]; step < push.steps; ++step)
          x = x - rate_ * plain_.gradient(push.worker, step, x);
        local.push_back(x);
      }
      versions_.push_back(rule_(update, local, versions_.back(), bases));
    }
    return versions_.back();
  }

  const Versions& versions() const { return versions_; }

 private:
  Plain& plain_;
  const double rate_;
  const Rule rule_;
  Versions versions_;
};

inline LocalReplay::Rule mean_of_weights() {
  return [](const auto& update, const auto& local, const auto&, const auto&) { return mean(update, local); };
}

// w - Σ factor · delta, by an outer step with momentum.
inline LocalReplay::Rule outer_step(double rate, double momentum,
                                    std::function<double(const Update&, const Push&)> factor) {
  return [=, m = Tensors()](const Update& update, const std::vector<Tensors>& local, const Tensors& w,
                            const std::vector<Tensors>& bases) mutable {
    auto delta = 0.0 * w;
    for (std::size_t i = 0; i < local.size(); ++i)
      delta = delta + factor(update, update.pushes[i]) * (bases[i] - local[i]);
    m = m.empty() ? delta : momentum * m + delta;
    return w - rate * (delta + momentum * m);
  };
}

inline double equal_share(const Update& update, const Push&) {
  return 1.0 / static_cast<double>(update.pushes.size());
}

inline double damped_share(const Update& update, const Push& push) {
  return equal_share(update, push) / std::sqrt(1 + staleness(update, push));
}

// The workers' own weights after elastic averaging, in which δ = α·(x - w) moves both.
inline std::vector<Tensors> elastic_weights(Plain& plain, double rate, double alpha,
                                            const std::vector<Update>& updates) {
  auto w = plain.initial();
  std::vector<Tensors> x(plain.work().trainers, w);
  std::vector<std::uint64_t> steps(plain.work().trainers);
  for (const auto& update : updates) {
    const auto& push = update.pushes.at(0);
    auto& mine = x[push.worker];
    for (auto& step = steps[push.worker]; step < push.steps; ++step)
      mine = mine - rate * plain.gradient(push.worker, step, mine);
    const auto delta = alpha * (mine - w);
    mine = mine - delta;
    w = w + delta;
  }
  return x;
}

}  // namespace capstan::lab
