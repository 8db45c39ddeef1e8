#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "capstan/fetch/manifest.h"
#include "capstan/status.h"

namespace capstan::fetch {

// Unpacks `inner`, a folder of a tar.gz, into the empty `folder` and returns what was unpacked. An archive
// with a link, a device, an absolute path or a ".." is malformed as a whole. Throws Failure if the disk is
// full or the user interrupts; files that were unpacked before remain.
Result<Manifest> unpack(const std::filesystem::path& archive, std::string_view inner,
                        const std::filesystem::path& folder, const std::function<bool()>& interrupted);

// The digest of a gzip file's unpacked contents; empty if the file is not gzip.
std::string digest_of_unpacked(const std::filesystem::path& file, std::string_view like);

}  // namespace capstan::fetch
