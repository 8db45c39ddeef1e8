#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace capstan::bench {

// The results of run_wire() and run_data() as lines for the user.
std::string wire_text(const nlohmann::json& result);
std::string data_text(const nlohmann::json& result);

}  // namespace capstan::bench
