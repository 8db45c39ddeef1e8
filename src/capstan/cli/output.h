#pragma once

#include <cstdint>
#include <string>

namespace capstan::cli {

// A line for people, on standard error. Where that cannot be written, nobody reads it and nothing happens.
void say(const std::string& line);

// "1 worker", "2 workers".
std::string counted(std::uint64_t number, const std::string& noun);

// A JSON value as one line of text; bytes that are no UTF-8 (of a file's name, say) are replaced.
template <class Json>
std::string json_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace capstan::cli
