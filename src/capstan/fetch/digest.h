#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace capstan::fetch {

// Computes an MD5 or SHA-256 digest incrementally. Not thread-safe.
class Digest {
 public:
  // The algorithm is the text before the colon of `like`: "md5:…" or "sha256:…".
  explicit Digest(std::string_view like);
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;
  ~Digest();

  void add(std::span<const std::byte> bytes);
  // "sha256:9f86…", in lower case. Called once, at the end.
  std::string text();

 private:
  std::string algorithm_;
  void* state_;  // OpenSSL's EVP_MD_CTX
};

// The digest of a file. Throws Failure if the file cannot be read.
std::string digest_of(const std::filesystem::path& file, std::string_view like);

}  // namespace capstan::fetch
