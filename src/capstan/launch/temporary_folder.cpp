#include "capstan/launch/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "capstan/user_error.h"

namespace capstan::launch {

TemporaryFolder::TemporaryFolder(const std::string& purpose) {
  auto form = (std::filesystem::temp_directory_path() / fmt::format("capstan-{}-XXXXXX", purpose)).string();
  if (!::mkdtemp(form.data())) throw UserError(fmt::format("{}: {}", form, std::strerror(errno)));
  path_ = form;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace capstan::launch
