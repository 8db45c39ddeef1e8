#include "capstan/fetch/transfer_progress.h"

#include <fmt/format.h>

namespace capstan::fetch {
namespace {

constexpr Duration kShortest = std::chrono::milliseconds(200);  // the shortest time to compute a rate from

double megabytes(std::uint64_t bytes) {
  return static_cast<double>(bytes) / 1e6;
}

}  // namespace

std::string TransferProgress::line(const std::string& file, std::uint64_t done, std::uint64_t total,
                                   TimePoint now) {
  // Fewer bytes than before: the partial download was of another file, and the download starts over.
  if (file != file_ || done < last_) {
    file_ = file;
    first_ = done;
    begun_ = now;
  }
  last_ = done;
  auto line = total > 0 ? fmt::format("{}  {:.1f} of {:.1f} MB  {:.0f} %", file, megabytes(done),
                                      megabytes(total), 100 * megabytes(done) / megabytes(total))
                        : fmt::format("{}  {:.1f} MB", file, megabytes(done));
  if (now - begun_ < kShortest) return line;
  const double rate = static_cast<double>(done - first_) / seconds(now - begun_);
  line += fmt::format("  {:.1f} MB/s", rate / 1e6);
  if (total > done && rate > 0) {
    const auto left = static_cast<std::uint64_t>(static_cast<double>(total - done) / rate);
    line += fmt::format("  ETA {}:{:02}", left / 60, left % 60);
  }
  return line;
}

}  // namespace capstan::fetch
