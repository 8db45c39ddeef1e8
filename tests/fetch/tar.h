#pragma once

#include <cstdio>
#include <cstring>
#include <string>

#include <zlib.h>

// Archives built by hand, by POSIX (ustar) and RFC 1952 (gzip).
namespace capstan::testing {

// One entry. Types: '0' file, '1' hard link, '2' symbolic link, '3' device, '5' folder.
inline std::string tar_entry(const std::string& name, const std::string& body, char type = '0',
                             const std::string& target = "") {
  std::string head(512, '\0');
  const auto put = [&](std::size_t at, const std::string& text) { head.replace(at, text.size(), text); };
  char octal[16];
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  std::snprintf(octal, sizeof octal, "%011zo", body.size());
  put(124, octal);
  put(136, "00000000000");
  put(148, "        ");
  head[156] = type;
  put(157, target);
  put(257, std::string("ustar\0", 6) + "00");
  unsigned sum = 0;
  for (const unsigned char c : head) sum += c;
  std::snprintf(octal, sizeof octal, "%06o", sum);
  put(148, std::string(octal) + '\0' + ' ');
  return head + body + std::string((512 - body.size() % 512) % 512, '\0');
}

inline std::string tar(const std::string& entries) {
  return entries + std::string(1024, '\0');
}

inline std::string gzip(const std::string& bytes, int level = 6) {
  z_stream z{};
  deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&z, bytes.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

}  // namespace capstan::testing
