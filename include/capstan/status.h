#pragma once

#include "capstan/cxx20.h"

#include <string>
#include <utility>
#include <variant>

namespace capstan {

// A failure that is expected in a cluster (a lost peer, a timeout, a malformed frame), with a message for the
// user. Wrong input throws (user_error.h).
enum class StatusCode { kOk, kClosed, kTimeout, kMalformed, kRefused, kUnavailable };

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status ok() { return {}; }
  static Status closed(std::string m) { return {StatusCode::kClosed, std::move(m)}; }
  static Status timeout(std::string m) { return {StatusCode::kTimeout, std::move(m)}; }
  static Status malformed(std::string m) { return {StatusCode::kMalformed, std::move(m)}; }
  static Status refused(std::string m) { return {StatusCode::kRefused, std::move(m)}; }
  static Status unavailable(std::string m) { return {StatusCode::kUnavailable, std::move(m)}; }

  bool is_ok() const { return code_ == StatusCode::kOk; }
  explicit operator bool() const { return is_ok(); }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same failure, prefixed by the operation that failed: "join 127.0.0.1:70: wrong token".
  Status within(const std::string& doing) const {
    return is_ok() ? *this : Status{code_, doing + ": " + message_};
  }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

namespace detail {
// Prints the rule that a caller has broken and the status, and aborts.
[[noreturn]] void misused_result(const char* rule, const Status& status);
}  // namespace detail

// A T, or the Status that explains why there is none. A value that does not exist must not be used: the
// program aborts, with the status in its message.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Status status) : state_(std::move(status)) {
    if (std::get<Status>(state_).is_ok())
      detail::misused_result("a Result without a value carries a failure", Status::ok());
  }

  bool is_ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return is_ok(); }
  Status status() const { return is_ok() ? Status::ok() : std::get<Status>(state_); }

  T& operator*() { return value(); }
  const T& operator*() const { return const_cast<Result*>(this)->value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &const_cast<Result*>(this)->value(); }

 private:
  T& value() {
    if (!is_ok()) [[unlikely]]
      detail::misused_result("only a successful Result has a value", std::get<Status>(state_));
    return std::get<T>(state_);
  }

  std::variant<T, Status> state_;
};

}  // namespace capstan
