#pragma once

#include <string>
#include <utility>
#include <variant>

#include "capstan/base/check.h"

namespace capstan {

// A failure that is expected in a cluster (a lost peer, a timeout, a malformed frame), with a message for the
// user. Bugs abort (check.h); wrong input throws (user_error.h).
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

// A T, or the Status that explains why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Status status) : state_(std::move(status)) {
    CAPSTAN_CHECK(!std::get<Status>(state_).is_ok(), "a Result without a value carries a failure");
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
    CAPSTAN_CHECK(is_ok(), "only a successful Result has a value");
    return std::get<T>(state_);
  }

  std::variant<T, Status> state_;
};

}  // namespace capstan
