#include "capstan/transport/local/local_core.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/uio.h>

namespace capstan::transport::local {
namespace {

constexpr std::size_t kBufferBytes = 1 << 16;
constexpr std::size_t kPartsPerWrite = 32;

iovec part_of(Bytes bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

}  // namespace

LocalCore::LocalCore(EventLoop& event_loop, UniqueFd socket, std::string peer)
    : Core(event_loop), socket_(std::move(socket)), peer_(std::move(peer)), buffer_(kBufferBytes) {}

void LocalCore::start() {
  if (watched_) return;
  watched_ = true;
  watches_writable_ = !queue_.empty();
  const std::uint32_t events = EPOLLIN | (watches_writable_ ? EPOLLOUT : 0U);
  // shut_down() ends the watch before this object is destroyed.
  loop().watch(socket_.get(), events, [this](std::uint32_t ready) { on_events(ready); });
}

void LocalCore::on_events(std::uint32_t events) {
  const auto self = shared_from_this();
  if ((events & EPOLLOUT) != 0) flush();
  if (is_open() && (events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) read();
}

void LocalCore::transmit(Outgoing message) {
  if (write_broken_) {
    if (message.sent) finish(std::move(message.sent), Status::closed(peer_ + " closed the connection"));
    return;
  }
  if (queue_.size() >= kMaxQueuedMessages) {
    auto why = Status::unavailable(
        peer_ + " does not read its messages: " + std::to_string(kMaxQueuedMessages) + " are queued");
    if (message.sent) finish(std::move(message.sent), why);
    return end_later(std::move(why));
  }
  Header header;
  header.flags = message.segment != nullptr ? kHasSegment : 0;
  header.frame_bytes = message.frame.size();
  header.payload_bytes = message.payload.size();
  const Bytes head = std::as_bytes(std::span(&header, 1));
  const int fd = message.segment != nullptr ? message.segment->fd() : -1;

  std::ptrdiff_t written = 0;
  if (queue_.empty()) {
    std::array<iovec, 3> parts{part_of(head), part_of(message.frame), part_of(message.payload)};
    written = write_some(socket_.get(), parts.data(), message.payload.empty() ? 2 : 3, fd);
    const auto all = static_cast<std::ptrdiff_t>(head.size() + message.frame.size() + message.payload.size());
    if (written == all) {
      if (message.sent) finish(std::move(message.sent), Status::ok());
      return;
    }
  }
  Queued queued;
  queued.head.reserve(head.size() + message.frame.size());
  queued.head.insert(queued.head.end(), head.begin(), head.end());
  queued.head.insert(queued.head.end(), message.frame.begin(), message.frame.end());
  queued.payload = message.payload;
  queued.sent = std::move(message.sent);
  if (fd >= 0 && written == 0) {
    queued.fd = UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!queued.fd) return end_later(Status::unavailable("cannot send a segment: too many open files"));
  }
  queued.written = written > 0 ? static_cast<std::size_t>(written) : 0;
  queue_.push_back(std::move(queued));
  if (written < 0) return break_writing();
  watch_writable(true);
}

void LocalCore::flush() {
  for (int call = 0; call < kCallsPerTurn && !queue_.empty(); ++call) {
    if (!write_queue()) break;
  }
  if (is_open()) watch_writable(!queue_.empty());
}

// One system call for as many queued messages as fit. False if the socket accepts no more for now.
bool LocalCore::write_queue() {
  std::array<iovec, kPartsPerWrite> parts;
  std::size_t count = 0;
  std::size_t offered = 0;
  const int fd = queue_.front().fd.get();
  for (auto& queued : queue_) {
    // A descriptor is attached to the first byte of a call, so its message begins a new call.
    if (count + 2 > parts.size() || (count > 0 && queued.fd)) break;
    const std::size_t head_written = std::min(queued.written, queued.head.size());
    const Bytes head = Bytes(queued.head).subspan(head_written);
    const Bytes payload = queued.payload.subspan(queued.written - head_written);
    if (!head.empty()) parts[count++] = part_of(head);
    if (!payload.empty()) parts[count++] = part_of(payload);
    offered += head.size() + payload.size();
  }
  const auto written = write_some(socket_.get(), parts.data(), count, fd);
  if (written < 0) {
    break_writing();
    return false;
  }
  if (written > 0) queue_.front().fd.reset();
  mark_written(static_cast<std::size_t>(written));
  return static_cast<std::size_t>(written) == offered;
}

void LocalCore::mark_written(std::size_t bytes) {
  while (!queue_.empty()) {
    Queued& front = queue_.front();
    const std::size_t left = front.head.size() + front.payload.size() - front.written;
    const std::size_t step = std::min(left, bytes);
    front.written += step;
    bytes -= step;
    if (step < left) return;
    if (front.sent) finish(std::move(front.sent), Status::ok());
    queue_.pop_front();
  }
}

// The peer reads no more. The connection ends only after the peer's last messages are read.
void LocalCore::break_writing() {
  write_broken_ = true;
  for (auto& queued : queue_) {
    if (queued.sent) finish(std::move(queued.sent), Status::closed(peer_ + " closed the connection"));
  }
  queue_.clear();
  watch_writable(false);
}

void LocalCore::watch_writable(bool on) {
  if (!watched_ || on == watches_writable_) return;
  watches_writable_ = on;
  loop().change(socket_.get(), EPOLLIN | (on ? EPOLLOUT : 0U));
}

void LocalCore::shut_down(std::vector<Sent>& unsent) {
  if (!write_broken_) flush();
  if (watched_) loop().unwatch(socket_.get());
  watched_ = false;
  socket_.reset();
  for (auto& queued : queue_) unsent.push_back(std::move(queued.sent));
  queue_.clear();
}

}  // namespace capstan::transport::local
