#include "capstan/lab/shipped_files.h"

#include <dlfcn.h>

#include "capstan/launch/child.h"

namespace capstan::lab {
namespace {

namespace fs = std::filesystem;

// The file that this code was loaded from: the program, or the shared library that a user's program links.
fs::path own_file() {
  Dl_info info{};
  // For a program, dladdr returns what it was started as, which need not be a path.
  if (::dladdr(reinterpret_cast<const void*>(&own_file), &info) != 0 && info.dli_fname &&
      fs::path(info.dli_fname).filename().string().find(".so") != std::string::npos)
    return fs::absolute(info.dli_fname);
  return launch::own_path();
}

// PREFIX/share/capstan/NAME for PREFIX/bin/capstan-torch and PREFIX/lib/TRIPLE/libcapstan-training.so, and
// ROOT/NAME for ROOT/build/release/bin/capstan-torch.
fs::path own_folder_of(const std::string& name) {
  auto folder = own_file().parent_path();
  for (int up = 0; up < 4 && folder.has_relative_path(); ++up) {
    for (const auto& candidate : {folder / "share" / "capstan" / name, folder / name})
      if (fs::is_directory(candidate)) return candidate;
    folder = folder.parent_path();
  }
  return {};
}

}  // namespace

std::vector<fs::path> shipped_folders(const std::string& name) {
  std::vector<fs::path> out;
  const auto here = fs::absolute(name);
  std::error_code ignored;
  if (fs::is_directory(here, ignored)) out.push_back(here);
  if (const auto own = own_folder_of(name);
      !own.empty() && (out.empty() || !fs::equivalent(own, here, ignored)))
    out.push_back(own);
  return out;
}

fs::path find_shipped(const std::string& folder, const std::string& file) {
  for (const auto& each : shipped_folders(folder))
    if (fs::is_regular_file(each / file)) return each / file;
  return {};
}

}  // namespace capstan::lab
