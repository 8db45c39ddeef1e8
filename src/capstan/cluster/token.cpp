#include "capstan/cluster/token.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>

#include "capstan/base/check.h"
#include "capstan/base/unique_fd.h"
#include "capstan/user_error.h"

namespace capstan::cluster {
namespace {

constexpr const char* kMakeToken = "od -An -N32 -tx1 /dev/urandom";

}  // namespace

Token Token::generate() {
  CAPSTAN_CHECK(sodium_init() >= 0, "libsodium initializes");
  Token token;
  randombytes_buf(token.bytes.data(), token.bytes.size());
  return token;
}

Token Token::parse(const std::string& text, const std::string& where) {
  Token token;
  std::size_t used = 0;
  const char* end = nullptr;
  const int bad = sodium_hex2bin(reinterpret_cast<unsigned char*>(token.bytes.data()), token.bytes.size(),
                                 text.data(), text.size(), " \n\r\t", &used, &end);
  if (bad != 0 || used != token.bytes.size() || end != text.data() + text.size()) {
    throw UserError(
        fmt::format("{}: a job token is 64 hexadecimal digits (create one with: {})", where, kMakeToken));
  }
  return token;
}

std::string Token::text() const {
  std::string hex(bytes.size() * 2 + 1, '\0');
  sodium_bin2hex(hex.data(), hex.size(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  hex.pop_back();
  return hex;
}

Token read_token(const std::filesystem::path& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) throw UserError(fmt::format("token file {}: {}", file.string(), std::strerror(errno)));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    throw UserError(fmt::format("token file {}: not a regular file", file.string()));
  }
  if ((info.st_mode & 077) != 0) {
    throw UserError(
        fmt::format("token file {} can be read by others: run chmod 600 {}", file.string(), file.string()));
  }
  char text[256];
  auto size = ::read(fd.get(), text, sizeof text);
  if (size == sizeof text) size = 0;  // longer than any token: malformed
  if (size < 0) throw UserError(fmt::format("token file {}: {}", file.string(), std::strerror(errno)));
  return Token::parse(std::string(text, static_cast<std::size_t>(size)),
                      fmt::format("token file {}", file.string()));
}

Token find_token(const std::filesystem::path& file) {
  if (!file.empty()) return read_token(file);
  if (const char* text = std::getenv(kTokenVariable)) return Token::parse(text, kTokenVariable);
  throw UserError(fmt::format(
      "no job token: every process of a job needs the same one. Create it with (umask 077; {} > job.token) "
      "and pass --token-file job.token, or set {}",
      kMakeToken, kTokenVariable));
}

}  // namespace capstan::cluster
