#include "capstan/fetch/download.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "capstan/base/check.h"
#include "capstan/base/failure.h"
#include "capstan/fetch/output_file.h"

namespace capstan::fetch {
namespace {

constexpr long kMostRedirects = 5;
constexpr long kSlowest = 1024;  // bytes per second
constexpr long kHttpOk = 200, kHttpPartial = 206, kHttpNoSuchRange = 416;

// The state of one request. Its callbacks return the value that lets libcurl continue or fail.
struct Request {
  const Transfer& transfer;
  CURL* curl;
  OutputFile& out;
  std::uint64_t asked_from;     // begin of the requested range
  std::uint64_t sent_from = 0;  // begin of the range in the server's answer
  bool begun = false;
  bool too_long = false, wrong_range = false, interrupted = false;
};

// "Content-Range: bytes 100-199/200" → 100.
void read_header(Request& request, std::string_view line) {
  std::string name(line.substr(0, line.find(':')));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (name.starts_with("http/")) request.sent_from = 0;  // the next answer, after a redirect
  if (name != "content-range") return;
  const auto digit = line.find_first_of("0123456789");
  if (digit == std::string_view::npos) return;
  std::from_chars(line.data() + digit, line.data() + line.size(), request.sent_from);
}

std::size_t on_header(char* bytes, std::size_t one, std::size_t size, void* self) {
  read_header(*static_cast<Request*>(self), {bytes, one * size});
  return one * size;
}

// An answer whose range does not begin at the end of the file cannot be appended.
bool begin_body(Request& request) {
  long code = 0;
  curl_easy_getinfo(request.curl, CURLINFO_RESPONSE_CODE, &code);
  request.begun = true;
  if (code == kHttpPartial) {
    request.wrong_range = request.sent_from != request.asked_from;
    return !request.wrong_range;
  }
  return request.out.size() == 0 || request.out.start_over();
}

std::size_t on_body(char* bytes, std::size_t one, std::size_t size, void* self) {
  auto& request = *static_cast<Request*>(self);
  if (!request.begun && !begin_body(request)) return 0;
  const auto most = request.transfer.most_bytes;
  request.too_long = most > 0 && request.out.size() + one * size > most;
  if (request.too_long || !request.out.write(std::as_bytes(std::span(bytes, one * size)))) return 0;
  return one * size;
}

int on_progress(void* self, curl_off_t total, curl_off_t, curl_off_t, curl_off_t) {
  auto& request = *static_cast<Request*>(self);
  request.interrupted = request.transfer.interrupted && request.transfer.interrupted();
  if (request.transfer.progress && request.begun && !request.interrupted) {
    const auto length = static_cast<std::uint64_t>(total);
    request.transfer.progress(request.out.size(), length > 0 ? length + request.sent_from : 0);
  }
  return request.interrupted ? 1 : 0;
}

std::string reason(CURLcode code, const char* text, long http) {
  if (code == CURLE_HTTP_RETURNED_ERROR) return fmt::format("HTTP {}", http);
  std::string said = text[0] ? text : curl_easy_strerror(code);
  return said.substr(0, said.find('\n'));
}

Status download_url(const Transfer& transfer, OutputFile& out) {
  static const auto ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(
      ready == CURLE_OK ? curl_easy_init() : nullptr, curl_easy_cleanup);
  if (!curl) return Status::unavailable("libcurl cannot be initialised");
  Request request{transfer, curl.get(), out, out.size()};
  char text[CURL_ERROR_SIZE] = "";
  const auto set = [&](CURLoption option, auto value) {
    CAPSTAN_CHECK(curl_easy_setopt(curl.get(), option, value) == CURLE_OK, "libcurl supports this option");
  };
  set(CURLOPT_URL, transfer.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, kMostRedirects);
  set(CURLOPT_FAILONERROR, 1L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_USERAGENT, "capstan");
  set(CURLOPT_CONNECTTIMEOUT, transfer.timeouts.connect_seconds);
  set(CURLOPT_LOW_SPEED_LIMIT, kSlowest);
  set(CURLOPT_LOW_SPEED_TIME, transfer.timeouts.stall_seconds);
  set(CURLOPT_ERRORBUFFER, static_cast<char*>(text));
  set(CURLOPT_HEADERFUNCTION, on_header);
  set(CURLOPT_HEADERDATA, &request);
  set(CURLOPT_WRITEFUNCTION, on_body);
  set(CURLOPT_WRITEDATA, &request);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, on_progress);
  set(CURLOPT_XFERINFODATA, &request);
  // Not CURLOPT_RESUME_FROM, which fails if a server ignores ranges.
  const auto range = fmt::format("{}-", request.asked_from);
  if (request.asked_from > 0) set(CURLOPT_RANGE, range.c_str());

  const auto code = curl_easy_perform(curl.get());
  if (request.interrupted)
    throw Failure(kInterrupted,
                  "interrupted: the partial download is kept; run the same command again to continue");
  out.throw_error();
  if (request.too_long) return Status::malformed(fmt::format("longer than {} bytes", transfer.most_bytes));
  if (request.wrong_range) return Status::malformed("the server sent another range than requested");
  long http = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &http);
  // No bytes follow: the file was already complete, or is another one. The checksum decides.
  if (http == kHttpNoSuchRange && request.asked_from > 0) return Status::ok();
  if (code != CURLE_OK) return Status::unavailable(reason(code, text, http));
  if (http == kHttpOk && !request.begun) (void)out.start_over();  // an empty file
  return Status::ok();
}

Status copy_file(const Transfer& transfer, OutputFile& out) {
  const UniqueFd in(::open(transfer.url.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts {};
  if (!in || ::fstat(in.get(), &facts) != 0) return Status::unavailable(std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) return Status::unavailable("not a regular file");
  (void)out.start_over();
  std::vector<std::byte> chunk(1 << 18);
  for (;;) {
    const auto got = ::read(in.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status::unavailable(std::strerror(errno));
    if (got == 0) return Status::ok();
    (void)out.write(std::span(chunk).first(static_cast<std::size_t>(got)));
    out.throw_error();
    if (transfer.interrupted && transfer.interrupted()) throw Failure(kInterrupted, "interrupted");
    if (transfer.progress) transfer.progress(out.size(), static_cast<std::uint64_t>(facts.st_size));
  }
}

}  // namespace

bool is_url(const std::string& source) {
  return source.starts_with("http://") || source.starts_with("https://");
}

Status download(const Transfer& transfer) {
  OutputFile out(transfer.part, OutputFile::Open::kContinue);
  out.throw_error();
  const auto status = is_url(transfer.url) ? download_url(transfer, out) : copy_file(transfer, out);
  (void)out.sync();
  if (!status && out.size() == 0) ::unlink(transfer.part.c_str());  // nothing to resume
  out.throw_error();
  return status;
}

}  // namespace capstan::fetch
