#include "capstan/wire/messages.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "capstan/base/text.h"

namespace capstan::wire {
namespace {

constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 34;
constexpr std::size_t kMaxDimensions = 8;
constexpr std::int64_t kMaxRows = std::numeric_limits<std::uint32_t>::max();  // of a row tensor
constexpr std::size_t kMaxNameBytes = 1024;  // of a tensor, a phase or a glob
constexpr std::size_t kMaxPhases = 64, kMaxGlobs = 256;
// Bytes of globs times bytes of tensor names: matching compares at most this many pairs of characters.
// Meanwhile the server sends no heartbeats.
constexpr std::size_t kMaxMatching = std::size_t{1} << 28;

constexpr std::array kNames = {"Challenge",
                               "Hello",
                               "Trusted",
                               "Refused",
                               "Join",
                               "Joined",
                               "Share",
                               "SendWeights",
                               "Initialize",
                               "Push",
                               "Pull",
                               "Weights",
                               "Leave",
                               "Heartbeat",
                               "Staged",
                               "Initialized",
                               "Gone",
                               "ApplyOrder",
                               "DropOrder",
                               "DeliverOrder",
                               "StatusRequest",
                               "StatusReport",
                               "StopRequest",
                               "Buffers",
                               "CheckpointOrder",
                               "CheckpointWritten",
                               "AccumulateOrder",
                               "Progress",
                               "Bucket",
                               "Average"};
static_assert(kNames.size() == std::variant_size_v<Message>);

bool is_name(const std::string& text) {
  return text.size() <= kMaxNameBytes && is_one_line(text);
}

template <std::size_t I>
Message decode_as(Reader& reader) {
  std::variant_alternative_t<I, Message> message;
  reader(message);
  return message;
}

template <std::size_t... I>
Message decode_type(std::size_t type, Reader& reader, std::index_sequence<I...>) {
  using Decode = Message (*)(Reader&);
  static constexpr Decode kDecoders[] = {&decode_as<I>...};
  return kDecoders[type](reader);
}

}  // namespace

const char* name_of(const Message& message) {
  return kNames[message.index()];
}

void append(const Message& message, std::vector<std::byte>& out) {
  Writer writer(out);
  writer(static_cast<std::uint16_t>(message.index()));
  std::visit([&](const auto& m) { writer(m); }, message);
}

std::vector<std::byte> encode(const Message& message) {
  std::vector<std::byte> out;
  append(message, out);
  return out;
}

Result<Message> decode(Bytes bytes) {
  Reader reader(bytes);
  std::uint16_t type = 0;
  reader(type);
  if (!reader.ok()) return Status::malformed("a message has no type");
  if (type >= std::variant_size_v<Message>)
    return Status::malformed(fmt::format("unknown message type {}", type));
  auto message = decode_type(type, reader, std::make_index_sequence<std::variant_size_v<Message>>());
  if (!reader.ok())
    return Status::malformed(fmt::format("a {} message has missing or invalid fields", kNames[type]));
  if (!reader.at_end())
    return Status::malformed(fmt::format("a {} message has bytes left over", kNames[type]));
  return message;
}

std::vector<Tensor> to_wire(const FlatLayout& layout) {
  std::vector<Tensor> tensors;
  for (const auto& t : layout.tensors()) tensors.push_back({t.name, t.dims, t.sparse});
  return tensors;
}

std::vector<Phase> to_wire(const std::vector<StepPhase>& phases) {
  std::vector<Phase> out;
  for (const auto& p : phases) out.push_back({p.name, p.globs});
  return out;
}

Result<std::vector<StepPhase>> phases_from_wire(const std::vector<Phase>& phases, const FlatLayout& layout) {
  if (phases.size() > kMaxPhases)
    return Status::malformed(
        fmt::format("a step has {} phases; at most {} are possible", phases.size(), kMaxPhases));
  std::vector<StepPhase> out;
  std::size_t glob_bytes = 0;
  for (const auto& p : phases) {
    if (!is_name(p.name))
      return Status::malformed("the name of a phase is too long, or is not text of one line");
    if (p.globs.size() > kMaxGlobs)
      return Status::malformed(
          fmt::format("phase {} has {} globs; at most {} are possible", p.name, p.globs.size(), kMaxGlobs));
    if (!std::ranges::all_of(p.globs, is_name))
      return Status::malformed(
          fmt::format("a glob of phase {} is too long, or is not text of one line", p.name));
    for (const auto& glob : p.globs) glob_bytes += glob.size() + 1;
    out.push_back({p.name, p.globs});
  }
  std::size_t name_bytes = 0;
  for (const auto& t : layout.tensors()) name_bytes += t.name.size() + 1;
  if (phases.size() > 1 && glob_bytes > kMaxMatching / std::max<std::size_t>(name_bytes, 1))
    return Status::malformed(
        fmt::format("the phases have {} bytes of globs, which takes too long for {} bytes of tensor names; "
                    "at most {} are possible",
                    glob_bytes, name_bytes, kMaxMatching / name_bytes));
  return out;
}

Result<FlatLayout> from_wire(const std::vector<Tensor>& tensors) {
  std::vector<TensorShape> shapes;
  std::uint64_t total = 0;
  for (const auto& t : tensors) {
    if (t.name.empty() || !is_name(t.name) || t.dims.size() > kMaxDimensions)
      return Status::malformed(
          "a tensor of the layout has no name, a name that is too long or not text of one line, or too many "
          "dimensions");
    std::uint64_t elements = 1;
    for (auto d : t.dims) {
      if (d <= 0 || static_cast<std::uint64_t>(d) > kMaxElements / elements) {
        return Status::malformed(fmt::format("tensor {} has an invalid shape", t.name));
      }
      elements *= static_cast<std::uint64_t>(d);
    }
    if (t.sparse && (t.dims.size() != 2 || t.dims[0] > kMaxRows))
      return Status::malformed(fmt::format(
          "tensor {} has sparse gradients, which need two dimensions and at most 2^32 - 1 rows; it is {}",
          t.name, shape_text(t.dims)));
    total += elements + FlatLayout::kAlignment;
    if (total > kMaxElements) return Status::malformed("the layout has too many elements");
    shapes.push_back({t.name, t.dims, t.sparse});
  }
  if (shapes.empty()) return Status::malformed("the layout has no tensors");
  return FlatLayout(std::move(shapes));
}

}  // namespace capstan::wire
