#include "capstan/transport/loopback/loopback.h"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "capstan/transport/loopback/pipe.h"
#include "capstan/user_error.h"

namespace capstan::transport::loopback {

// One name with a listener. Guarded by the network's mutex, except `accept` (the listener's thread).
struct Port {
  EventLoop& loop;
  Accept accept;
  std::vector<std::shared_ptr<Pipe>> waiting;  // connected, not accepted yet
  bool is_listening = true;
};

struct Network::State {
  explicit State(bool shares) : share_memory(shares) {}

  const bool share_memory;
  std::mutex mutex;  // guards what follows
  std::map<std::string, std::shared_ptr<Port>> ports;
};

struct NetworkAccess {
  using State = Network::State;

  // Runs on the listener's thread, once per new connection.
  static void accept_one(const std::shared_ptr<State>& state, const std::shared_ptr<Port>& port,
                         const std::string& name) {
    std::shared_ptr<Pipe> pipe;
    {
      const std::lock_guard lock(state->mutex);
      if (!port->is_listening || port->waiting.empty()) return;
      pipe = std::move(port->waiting.front());
      port->waiting.erase(port->waiting.begin());
    }
    const Accept accept = port->accept;  // the call may destroy the listener
    accept(connect_end(port->loop, std::move(pipe), 1, state->share_memory, name));
  }
};

namespace {

class LoopbackListener final : public Listener {
 public:
  LoopbackListener(std::shared_ptr<NetworkAccess::State> state, std::shared_ptr<Port> port, std::string name)
      : state_(std::move(state)), port_(std::move(port)), name_(std::move(name)) {}
  LoopbackListener(const LoopbackListener&) = delete;
  LoopbackListener& operator=(const LoopbackListener&) = delete;

  ~LoopbackListener() override {
    std::vector<std::shared_ptr<Pipe>> never_accepted;
    {
      const std::lock_guard lock(state_->mutex);
      state_->ports.erase(name_);
      port_->is_listening = false;
      never_accepted.swap(port_->waiting);
    }
    for (const auto& pipe : never_accepted) pipe->hang_up(1);
  }

  std::string address() const override { return name_; }

 private:
  std::shared_ptr<NetworkAccess::State> state_;
  std::shared_ptr<Port> port_;
  std::string name_;
};

}  // namespace

Network::Network(bool share_memory) : state_(std::make_shared<State>(share_memory)) {}
Network::~Network() = default;

std::unique_ptr<Listener> Network::listen(EventLoop& loop, const std::string& name, Accept accept) {
  auto port = std::make_shared<Port>(Port{loop, std::move(accept), {}, true});
  const std::lock_guard lock(state_->mutex);
  if (!state_->ports.emplace(name, port).second) {
    throw UserError("loopback name " + name + " is in use in this process; choose another");
  }
  return std::make_unique<LoopbackListener>(state_, std::move(port), name);
}

Result<std::unique_ptr<Connection>> Network::connect(EventLoop& loop, const std::string& name) {
  auto pipe = std::make_shared<Pipe>();
  {
    const std::lock_guard lock(state_->mutex);
    const auto found = state_->ports.find(name);
    if (found == state_->ports.end()) return Status::unavailable("no listener on loopback:" + name);
    found->second->waiting.push_back(pipe);
    // Under the lock: the loop exists as long as its listener.
    found->second->loop.post(
        [state = state_, port = found->second, name] { NetworkAccess::accept_one(state, port, name); });
  }
  return connect_end(loop, std::move(pipe), 0, state_->share_memory, name);
}

}  // namespace capstan::transport::loopback
