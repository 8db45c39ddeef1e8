#pragma once

#include "capstan/strategy/strategy.h"

// One function per strategy, for table.cpp. `options` is the text after the name's colon.
namespace capstan::strategy {

std::unique_ptr<Strategy> make_sync(const std::string& options, std::uint32_t workers);
std::unique_ptr<Strategy> make_async(const std::string& options, std::uint32_t workers);
std::unique_ptr<Strategy> make_batch(const std::string& options, std::uint32_t workers);
std::unique_ptr<Strategy> make_ssp(const std::string& options, std::uint32_t workers);
std::unique_ptr<Strategy> make_backup(const std::string& options, std::uint32_t workers);
std::unique_ptr<Strategy> make_dc_asgd(const std::string& options, std::uint32_t workers);
std::unique_ptr<Strategy> make_dc_asgd_adaptive(const std::string& options, std::uint32_t workers);
std::unique_ptr<Strategy> make_easgd(const std::string& options, std::uint32_t workers);
std::unique_ptr<Strategy> make_local_sgd(const std::string& options, std::uint32_t workers);
std::unique_ptr<Strategy> make_diloco(const std::string& options, std::uint32_t workers);
std::unique_ptr<Strategy> make_decoupled_diloco(const std::string& options, std::uint32_t workers);
std::unique_ptr<Strategy> make_fedavg(const std::string& options, std::uint32_t workers);
std::unique_ptr<Strategy> make_fedbuff(const std::string& options, std::uint32_t workers);

}  // namespace capstan::strategy
