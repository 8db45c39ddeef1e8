#include "capstan/fetch/digest.h"

#include <cerrno>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <unistd.h>

#include "capstan/base/check.h"
#include "capstan/base/failure.h"
#include "capstan/base/unique_fd.h"

namespace capstan::fetch {
namespace {

EVP_MD_CTX* context(void* state) {
  return static_cast<EVP_MD_CTX*>(state);
}

}  // namespace

Digest::Digest(std::string_view like) : algorithm_(like.substr(0, like.find(':'))), state_(EVP_MD_CTX_new()) {
  CAPSTAN_CHECK(algorithm_ == "md5" || algorithm_ == "sha256", "the algorithm is md5 or sha256");
  const auto* rule = algorithm_ == "md5" ? EVP_md5() : EVP_sha256();
  // A system may forbid MD5 for security reasons; here it only detects accidental damage.
  if (EVP_DigestInit_ex(context(state_), rule, nullptr) != 1) {
    EVP_MD_CTX_free(context(state_));
    throw Failure(kFailed, fmt::format("this system's OpenSSL does not support {}", algorithm_));
  }
}

Digest::~Digest() {
  EVP_MD_CTX_free(context(state_));
}

void Digest::add(std::span<const std::byte> bytes) {
  CAPSTAN_CHECK(EVP_DigestUpdate(context(state_), bytes.data(), bytes.size()) == 1,
                "the digest is not final");
}

std::string Digest::text() {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  CAPSTAN_CHECK(EVP_DigestFinal_ex(context(state_), bytes, &size) == 1, "the digest is not final");
  auto out = algorithm_ + ":";
  for (unsigned i = 0; i < size; ++i) out += fmt::format("{:02x}", bytes[i]);
  return out;
}

std::string digest_of(const std::filesystem::path& file, std::string_view like) {
  Digest digest(like);
  const UniqueFd in(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::vector<std::byte> chunk(1 << 18);
  for (;;) {
    const auto got = in ? ::read(in.get(), chunk.data(), chunk.size()) : -1;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      throw Failure(kFailed, fmt::format("{} cannot be read: {}", file.string(), std::strerror(errno)));
    if (got == 0) return digest.text();
    digest.add(std::span(chunk).first(static_cast<std::size_t>(got)));
  }
}

}  // namespace capstan::fetch
