#include "capstan/checkpoint/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "capstan/base/arena_order.h"
#include "capstan/base/check.h"
#include "capstan/checkpoint/atomic_file.h"
#include "capstan/checkpoint/checksum.h"
#include "capstan/checkpoint/safetensors.h"
#include "capstan/user_error.h"

namespace capstan::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = "weights";
constexpr const char* kBuffers = "statistics";

Range intersection(const Range& a, const Range& b) {
  const auto begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

std::string file_name(const char* what, const Shard& shard) {
  return shard.servers == 1 ? fmt::format("{}.safetensors", what)
                            : fmt::format("{}-{}-of-{}.safetensors", what, shard.server + 1, shard.servers);
}

bool is_whole(const Piece& piece, const TensorShape& tensor) {
  return piece.elements == Range{0, tensor.elements()};
}

std::uint64_t checksum_of(std::span<const float> values) {
  return checksum(std::as_bytes(values));
}

// A file to be written: its tensors, and their pieces for the manifest.
struct File {
  std::string name;
  std::vector<TensorView> views;
  std::vector<Piece> pieces;

  void add(const std::string& array, const TensorShape& tensor, Range elements,
           std::span<const float> values) {
    const bool whole = elements == Range{0, tensor.elements()};
    auto key = array == kWeights || array == kBuffers ? tensor.name : array + "/" + tensor.name;
    if (!whole) key += fmt::format("[{}:{}]", elements.begin, elements.end);
    pieces.push_back({name, key, array, tensor.name, elements, checksum_of(values)});
    views.push_back({std::move(key),
                     whole ? tensor.dims : std::vector{static_cast<std::int64_t>(values.size())}, values});
  }
};

void add_array(File& file, const FlatLayout& layout, const Shard& shard, const NamedArray& array,
               std::vector<float>& scratch) {
  CAPSTAN_CHECK(array.values.size() == shard.range.size(), "the array has the size of the shard's range");
  for (std::size_t i = 0; i < layout.tensors().size(); ++i) {
    const auto& tensor = layout.tensors()[i];
    const auto mine = intersection(layout.range(i), shard.range);
    if (mine.size() == 0 && (tensor.elements() > 0 || shard.server > 0)) continue;
    // A tensor without elements may be outside of the range.
    const auto values = mine.size() == 0 ? std::span<float>()
                                         : array.values.subspan(mine.begin - shard.range.begin, mine.size());
    const Range elements{mine.begin - layout.offset(i), mine.end - layout.offset(i)};
    if (elements.size() == tensor.elements() && tensor.dims.size() == 4) {
      scratch.assign(values.begin(), values.end());
      to_file_order(tensor.dims, scratch, values);
    }
    file.add(array.name, tensor, elements, values);
  }
}

std::vector<Piece> write(const fs::path& folder, File&& file) {
  write_safetensors(folder / file.name, file.views, {{"producer", "capstan"}, {"format", "pt"}});
  return std::move(file.pieces);
}

// Reads the pieces of a checkpoint and checks their checksums; keeps one file open.
class PieceReader {
 public:
  explicit PieceReader(const fs::path& folder) : folder_(folder) {}

  std::vector<float> read(const Piece& piece) {
    const auto path = folder_ / piece.file;
    if (!reader_ || open_ != piece.file) {
      reader_.reset();
      reader_.emplace(path);
      open_ = piece.file;
    }
    auto tensor = reader_->read(piece.key);
    if (!tensor || tensor->values.size() != piece.elements.size())
      throw UserError(fmt::format("{} does not contain tensor {}", path.string(), piece.key));
    if (checksum_of(tensor->values) != piece.checksum)
      throw UserError(
          fmt::format("{} is damaged: the checksum of tensor {} does not match", path.string(), piece.key));
    return std::move(tensor->values);
  }

 private:
  const fs::path folder_;
  std::optional<SafetensorsReader> reader_;
  std::string open_;
};

// The index of each tensor by name.
std::map<std::string, std::size_t> index_of(const FlatLayout& layout) {
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < layout.tensors().size(); ++i) index[layout.tensors()[i].name] = i;
  return index;
}

// Copies a piece's elements in `range`.
void place(const Piece& piece, const TensorShape& tensor, std::uint64_t offset, std::vector<float> values,
           Range range, std::span<float> out) {
  const Range flat{offset + piece.elements.begin, offset + piece.elements.end};
  const auto wanted = intersection(flat, range);
  if (is_whole(piece, tensor) && tensor.dims.size() == 4) {
    const auto file_order = values;
    to_arena_order(tensor.dims, file_order, values);
  }
  std::ranges::copy(std::span(values).subspan(wanted.begin - flat.begin, wanted.size()),
                    out.begin() + static_cast<std::ptrdiff_t>(wanted.begin - range.begin));
}

}  // namespace

bool is_counter(const std::string& name) {
  return name.ends_with("num_batches_tracked");
}

std::vector<Piece> write_shard(const fs::path& folder, const FlatLayout& layout, Shard& shard) {
  CAPSTAN_CHECK(!shard.arrays.empty() && shard.arrays.front().name == kWeights,
                "the weights are the first array");
  std::vector<float> scratch;
  File weights{file_name("weights", shard), {}, {}};
  add_array(weights, layout, shard, shard.arrays.front(), scratch);
  std::vector<float> buffers(shard.buffers.begin(), shard.buffers.end());
  for (std::size_t i = 0; i < shard.buffers_layout.tensors().size(); ++i) {
    const auto range = shard.buffers_layout.range(i);
    const auto& tensor = shard.buffers_layout.tensors()[i];
    const auto values = std::span(buffers).subspan(range.begin, range.size());
    const bool counts = is_counter(tensor.name);
    // Rounded as they are written, for the checksum.
    if (counts) std::ranges::transform(values, values.begin(), [](float v) { return std::round(v); });
    weights.add(kBuffers, tensor, {0, tensor.elements()}, values);
    weights.views.back().as_int64 = counts;
  }
  auto pieces = write(folder, std::move(weights));
  if (shard.arrays.size() == 1) return pieces;

  File state{file_name("optimizer", shard), {}, {}};
  for (const auto& array : std::span(shard.arrays).subspan(1))
    add_array(state, layout, shard, array, scratch);
  auto more = write(folder, std::move(state));
  pieces.insert(pieces.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return pieces;
}

void write_manifest(const fs::path& folder, const Manifest& manifest) {
  AtomicFile file(folder / kManifestFile);
  const auto text = to_json(manifest);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

Manifest read_manifest(const fs::path& folder) {
  const auto path = folder / kManifestFile;
  std::ifstream file(path);
  if (!file)
    throw UserError(fmt::format("{} is not a checkpoint: it has no {}", folder.string(), kManifestFile));
  return parse_manifest({std::istreambuf_iterator<char>(file), {}}, path.string());
}

void verify(const fs::path& folder, const Manifest& manifest) {
  PieceReader reader(folder);
  for (const auto& piece : manifest.pieces) (void)reader.read(piece);
}

void load(const fs::path& folder, const Manifest& manifest, Range range, std::span<const NamedArray> arrays) {
  const FlatLayout layout(manifest.parameters);
  const auto index = index_of(layout);
  for (const auto& array : arrays) {
    CAPSTAN_CHECK(array.values.size() == range.size(), "the array has the size of the range");
    if (array.name != kWeights && std::ranges::find(manifest.state, array.name) == manifest.state.end())
      throw UserError(fmt::format("{} has no {}", folder.string(), array.name));
    std::ranges::fill(array.values, 0.0f);
  }
  PieceReader reader(folder);
  for (const auto& piece : manifest.pieces) {
    const auto array = std::ranges::find(arrays, piece.array, &NamedArray::name);
    if (array == arrays.end()) continue;
    const auto i = index.at(piece.tensor);
    const auto offset = layout.offset(i);
    const Range flat{offset + piece.elements.begin, offset + piece.elements.end};
    if (intersection(flat, range).size() == 0) continue;
    place(piece, layout.tensors()[i], offset, reader.read(piece), range, array->values);
  }
}

std::vector<float> load_buffers(const fs::path& folder, const Manifest& manifest) {
  const FlatLayout layout(manifest.buffers);
  const auto index = index_of(layout);
  std::vector<float> flat(layout.size());
  PieceReader reader(folder);
  for (const auto& piece : manifest.pieces) {
    if (piece.array != kBuffers) continue;
    const auto at = layout.offset(index.at(piece.tensor)) + piece.elements.begin;
    std::ranges::copy(reader.read(piece), flat.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return flat;
}

}  // namespace capstan::checkpoint
