#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "capstan/launch/child.h"

namespace capstan::cli {

// `capstan eval` beside a job, where it is asked for. Not thread-safe.
class EvaluatorChild {
 public:
  using Say = std::function<void(const std::string&)>;

  EvaluatorChild(bool wanted, const std::filesystem::path& run);

  // Passes on what it has said since the last call.
  void look(const Say& say);
  // Waits until it has evaluated the last checkpoint; not where the user is in a hurry.
  void finish(const Say& say, const std::function<bool()>& hurry);

 private:
  std::filesystem::path log_;
  std::streamoff said_ = 0;
  std::optional<launch::Child> child_;
};

}  // namespace capstan::cli
