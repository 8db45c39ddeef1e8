#pragma once

#include <exception>
#include <string_view>

#include <fmt/format.h>

#include "capstan/base/failure.h"
#include "capstan/training/task_errors.h"
#include "capstan/user_error.h"

namespace capstan::lab {

// Calls a plug-in while a run is under way. An exception fails the run, with `what` has failed; a UserError
// is the user's mistake and passes unchanged.
template <class Call>
auto call_plugin(std::string_view what, Call call) {
  try {
    return call();
  } catch (const UserError&) {
    throw;
  } catch (const Failure&) {
    throw;
  } catch (const std::exception& error) {
    throw Failure(kFailed, fmt::format("{} failed: {}", what, training::reason_of(error)));
  }
}

}  // namespace capstan::lab
