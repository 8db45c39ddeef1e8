#include "capstan/training/allreduce.h"

#include <chrono>
#include <exception>
#include <thread>
#include <vector>

#include <ATen/ops/from_blob.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "capstan/base/failure.h"
#include "capstan/client/connector.h"

namespace capstan::training {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(100);
// Timeouts for the others to load their data and join, and for the connections among all processes.
constexpr auto kJoinTimeout = std::chrono::minutes(10);
constexpr auto kConnectTimeout = std::chrono::seconds(30);
// Rank 0 evaluates while the others wait for its next gradient, so this is long. A lost process is detected
// by its connections and by its launcher.
constexpr auto kStep = std::chrono::hours(24);

constexpr auto kAllJoined = "all joined";

std::string joined_key(std::uint32_t rank) {
  return fmt::format("rank {} joined", rank);
}

}  // namespace

class AllreduceGroup::Gloo {
 public:
  Gloo(const std::string& address, std::uint32_t rank, std::uint32_t workers, Poll poll)
      : host_(client::parse_address(address).host), rank_(rank), workers_(workers), poll_(std::move(poll)) {
    c10d::TCPStoreOptions options;
    options.port = client::parse_address(address).port;
    options.isServer = rank == 0;
    options.waitWorkers = false;
    options.timeout = kConnectTimeout;
    store_ = guarded([&] { return c10::make_intrusive<c10d::TCPStore>(host_, options); });
  }

  std::string address() const { return fmt::format("{}:{}", host_, store_->getPort()); }

  // Gloo waits forever for a missing process, so it starts only after all have announced themselves.
  void rendezvous() {
    if (rank_ == 0) {
      for (std::uint32_t other = 1; other < workers_;) {
        if (guarded([&] { return store_->check({joined_key(other)}); })) {
          ++other;
        } else {
          poll_();
          std::this_thread::sleep_for(kPollInterval);
        }
      }
    }
    group_ = guarded([&] {
      if (rank_ == 0) {
        store_->set(kAllJoined, std::vector<std::uint8_t>{1});
      } else {
        store_->set(joined_key(rank_), std::vector<std::uint8_t>{1});
        store_->wait({kAllJoined}, kJoinTimeout);
      }
      auto options = c10d::ProcessGroupGloo::Options::create(kStep);
      options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(host_));
      return c10::make_intrusive<c10d::ProcessGroupGloo>(store_, static_cast<int>(rank_),
                                                         static_cast<int>(workers_), options);
    });
  }

  using Work = c10::intrusive_ptr<c10d::Work>;

  Work begin_sum(const at::Tensor& tensor) {
    return guarded([&] {
      std::vector<at::Tensor> tensors = {tensor};
      return group_->allreduce(tensors);
    });
  }

  void wait(Work& work) {
    while (poll_ && !work->isCompleted()) {
      try {
        work->wait(kPollInterval);
      } catch (const std::exception&) {  // not yet complete, or failed, which the last wait reports
        if (!work->isCompleted()) poll_();
      }
    }
    guarded([&] { return work->wait(); });
  }

 private:
  // Of Gloo's error text only the first line is for users.
  template <class Function>
  auto guarded(Function function) -> decltype(function()) {
    try {
      return function();
    } catch (const std::exception& error) {
      const std::string text = error.what();
      throw Failure(kLost,
                    fmt::format("the other workers cannot be reached: {}", text.substr(0, text.find('\n'))));
    }
  }

  const std::string host_;
  const std::uint32_t rank_, workers_;
  const Poll poll_;
  c10::intrusive_ptr<c10d::TCPStore> store_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
};

AllreduceGroup::AllreduceGroup(std::unique_ptr<Gloo> gloo) : gloo_(std::move(gloo)) {}
AllreduceGroup::~AllreduceGroup() = default;

std::unique_ptr<AllreduceGroup> AllreduceGroup::open(const std::string& address, std::uint32_t workers,
                                                     Poll poll) {
  return std::unique_ptr<AllreduceGroup>(
      new AllreduceGroup(std::make_unique<Gloo>(address, 0, workers, std::move(poll))));
}

std::unique_ptr<AllreduceGroup> AllreduceGroup::join(const std::string& address, std::uint32_t rank,
                                                     std::uint32_t workers) {
  return std::unique_ptr<AllreduceGroup>(
      new AllreduceGroup(std::make_unique<Gloo>(address, rank, workers, Poll())));
}

std::string AllreduceGroup::address() const {
  return gloo_->address();
}

void AllreduceGroup::rendezvous() {
  gloo_->rendezvous();
}

void AllreduceGroup::sum(std::span<float> values) {
  auto work =
      gloo_->begin_sum(at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kFloat));
  gloo_->wait(work);
}

std::unique_ptr<AllreduceGroup::Sum> AllreduceGroup::begin_sum(const at::Tensor& tensor,
                                                               std::function<void()> on_done) {
  class Begun final : public Sum {
   public:
    Begun(Gloo& gloo, Gloo::Work work) : gloo_(gloo), work_(std::move(work)) {}
    void wait() override { gloo_.wait(work_); }

   private:
    Gloo& gloo_;
    Gloo::Work work_;
  };
  auto work = gloo_->begin_sum(tensor);
  if (on_done) work->getFuture()->addCallback([on_done = std::move(on_done)](auto&) { on_done(); });
  return std::make_unique<Begun>(*gloo_, std::move(work));
}

}  // namespace capstan::training
