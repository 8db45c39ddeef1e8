#include "capstan/data/gzip.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <zlib.h>

#include "capstan/base/check.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

constexpr std::uint64_t kPiece = 4 << 20;
constexpr int kGzipWindow = 15 + 16;  // zlib's largest window, gzip framing

}  // namespace

std::string unpack_built_in(std::span<const std::uint8_t> gzip) {
  z_stream stream{};
  CAPSTAN_CHECK(inflateInit2(&stream, kGzipWindow) == Z_OK, "zlib initializes");
  stream.next_in = const_cast<Bytef*>(gzip.data());
  stream.avail_in = static_cast<uInt>(gzip.size());
  std::string out;
  int state = Z_OK;
  while (state == Z_OK) {
    const auto done = out.size();
    out.resize(done + kPiece / 16);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + done);
    stream.avail_out = static_cast<uInt>(out.size() - done);
    state = inflate(&stream, Z_NO_FLUSH);
    out.erase(out.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  CAPSTAN_CHECK(state == Z_STREAM_END, "the built-in data is complete");
  return out;
}

GzipFile::GzipFile(std::string path) : path_(std::move(path)) {
  errno = 0;
  file_ = gzopen(path_.c_str(), "rb");
  if (!file_)
    throw UserError(fmt::format("cannot open {}: {}", path_, std::strerror(errno ? errno : ENOMEM)));
  gzbuffer(static_cast<gzFile>(file_), 256 << 10);
}

GzipFile::~GzipFile() {
  gzclose(static_cast<gzFile>(file_));
}

std::vector<std::uint8_t> GzipFile::read(std::uint64_t bytes) {
  const auto file = static_cast<gzFile>(file_);
  std::vector<std::uint8_t> out;
  while (out.size() < bytes) {
    const auto done = out.size();
    const auto piece = std::min(bytes - done, kPiece);
    out.resize(done + piece);
    const int got = gzread(file, out.data() + done, static_cast<unsigned>(piece));
    int error = Z_OK;
    const char* const text = gzerror(file, &error);
    // For a truncated gzip file zlib first returns the data it has, together with Z_BUF_ERROR.
    if (got < 0 || (error != Z_OK && error != Z_STREAM_END)) {
      throw UserError(fmt::format("{}: {}", path_,
                                  error == Z_ERRNO       ? std::strerror(errno)
                                  : error == Z_BUF_ERROR ? "the gzip data ends too early"
                                                         : fmt::format("bad gzip data ({})", text)));
    }
    out.resize(done + static_cast<std::size_t>(got));
    if (static_cast<std::uint64_t>(got) < piece) break;
  }
  return out;
}

}  // namespace capstan::data
