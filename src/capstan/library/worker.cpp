#include "capstan/worker.h"

#include <utility>

#include <fmt/format.h>

#include "capstan/client/worker_client.h"
#include "capstan/library/links.h"
#include "capstan/user_error.h"

namespace capstan {
namespace {

void check_arguments(const FlatLayout& layout, std::span<const float> initial) {
  if (const auto valid = wire::from_wire(wire::to_wire(layout)); !valid)
    throw UserError("FlatLayout: " + valid.status().message());
  for (const auto& tensor : layout.tensors()) {
    if (tensor.sparse)
      throw UserError(fmt::format(
          "FlatLayout: tensor {} is sparse; capstan::Worker pushes whole gradients: declare it dense",
          tensor.name));
  }
  if (initial.size() != layout.size()) {
    throw UserError(fmt::format("the initial weights have {} elements; the layout has {}, gaps included",
                                initial.size(), layout.size()));
  }
}

Status refuse_local_steps(const client::WorkerClient& client) {
  if (client.local_optimizer().entries.empty()) return Status::ok();
  return Status::refused(fmt::format(
      "the job's strategy is {}, for which workers make local steps; capstan::Worker pushes gradients: "
      "serve with another --strategy, such as sync or async",
      client.strategy()));
}

}  // namespace

// Thread rule: that of Worker.
class [[gnu::visibility("hidden")]] Worker::Impl {
 public:
  Impl(std::unique_ptr<client::WorkerClient> client, const FlatLayout& layout)
      : client_(std::move(client)), layout_(layout) {}

  client::WorkerClient& client() {
    return *client_;
  }
  const FlatLayout& layout() const {
    return layout_;
  }
  std::uint64_t version() const {
    return version_;
  }

  Range range(std::size_t tensor) const {
    if (tensor < layout_.tensors().size()) return layout_.range(tensor);
    throw UserError(fmt::format("there is no tensor {}: the layout has {}, counted from 0", tensor,
                                layout_.tensors().size()));
  }
  Range range(std::string_view tensor) const {
    if (const auto index = layout_.find(tensor)) return layout_.range(*index);
    throw UserError(fmt::format("there is no tensor \"{}\"; the first of the layout is \"{}\"", tensor,
                                layout_.tensors().front().name));
  }

  // `exchange` talks to the servers, which a worker that has left must not.
  template <class Exchange>
  Result<Update> exchanged(Exchange exchange) {
    if (has_left_) return Status::closed("this worker has left the job");
    const auto update = exchange(*client_);
    if (!update) return update.status();
    version_ = update->version.value;
    return Update{update->version.value, update->applied.value, update->stop};
  }
  void leave() {
    if (!std::exchange(has_left_, true)) client_->leave();
  }

 private:
  const std::unique_ptr<client::WorkerClient> client_;
  const FlatLayout layout_;
  std::uint64_t version_ = 0;
  bool has_left_ = false;
};

Result<Worker> Worker::join(const JoinOptions& options, const FlatLayout& layout,
                            std::span<const float> initial) {
  check_arguments(layout, initial);
  auto link = library::link_options(options);
  link.index = options.rank;
  auto joined = client::WorkerClient::join(link, library::connector(options), layout, initial);
  if (!joined) return joined.status();
  if (auto bad = refuse_local_steps(**joined); !bad.is_ok()) {
    (*joined)->leave();
    return bad;
  }
  return Worker(std::make_unique<Impl>(std::move(*joined), layout));
}

Worker::Worker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Worker::Worker(Worker&&) noexcept = default;
Worker& Worker::operator=(Worker&&) noexcept = default;
Worker::~Worker() = default;

std::uint32_t Worker::rank() const {
  return impl_->client().rank().value;
}

std::uint32_t Worker::workers() const {
  return impl_->client().workers();
}

std::uint32_t Worker::servers() const {
  return impl_->client().servers();
}

std::string Worker::strategy() const {
  return impl_->client().strategy();
}

std::string Worker::transport() const {
  return impl_->client().transport();
}

std::uint64_t Worker::version() const {
  return impl_->version();
}

const FlatLayout& Worker::layout() const {
  return impl_->layout();
}

std::span<float> Worker::gradients() const {
  return impl_->client().gradients();
}

std::span<float> Worker::gradients(std::size_t tensor) const {
  const auto range = impl_->range(tensor);
  return gradients().subspan(range.begin, range.size());
}

std::span<float> Worker::gradients(std::string_view tensor) const {
  const auto range = impl_->range(tensor);
  return gradients().subspan(range.begin, range.size());
}

std::span<const float> Worker::weights() const {
  return impl_->client().weights();
}

std::span<const float> Worker::weights(std::size_t tensor) const {
  const auto range = impl_->range(tensor);
  return weights().subspan(range.begin, range.size());
}

std::span<const float> Worker::weights(std::string_view tensor) const {
  const auto range = impl_->range(tensor);
  return weights().subspan(range.begin, range.size());
}

Result<Update> Worker::pull() {
  return impl_->exchanged([](auto& client) { return client.pull(); });
}

Result<Update> Worker::push_pull(const StepReport& report) {
  return impl_->exchanged([&](auto& client) {
    return client.push_pull({.samples = report.samples,
                             .loss = report.loss,
                             .compute_seconds = report.compute_seconds,
                             .data_seconds = report.data_seconds,
                             .steps = report.steps});
  });
}

void Worker::leave() {
  impl_->leave();
}

}  // namespace capstan
