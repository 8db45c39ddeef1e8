#pragma once

#include "capstan/strategy/strategy.h"

// What table.cpp lists: one function per strategy file. `options` is what follows the name's colon.
namespace capstan::strategy {

std::unique_ptr<Strategy> make_sync(const std::string& options, std::uint32_t workers);
std::unique_ptr<Strategy> make_async(const std::string& options, std::uint32_t workers);
std::unique_ptr<Strategy> make_batch(const std::string& options, std::uint32_t workers);

}  // namespace capstan::strategy
