#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "capstan/base/status.h"
#include "capstan/fetch/manifest.h"

namespace capstan::fetch {

// Unpacks `inner`, a folder of a tar.gz, into `folder`, which is empty, and says what is there now. Only
// files and folders that stay inside are unpacked: an archive with a link, a device, an absolute path or a
// ".." is malformed as a whole. Throws Failure where the disk is full or the user interrupts; what is
// unpacked by then remains.
Result<Manifest> unpack(const std::filesystem::path& archive, std::string_view inner,
                        const std::filesystem::path& folder, const std::function<bool()>& interrupted);

// The digest of what a gzip file holds; empty where it is none.
std::string digest_of_unpacked(const std::filesystem::path& file, std::string_view like);

}  // namespace capstan::fetch
