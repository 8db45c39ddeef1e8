#include "capstan/checkpoint/torch_file.h"

#include <set>
#include <string>

#include <fmt/format.h>

#include "capstan/base/check.h"
#include "capstan/base/json.h"
#include "capstan/checkpoint/atomic_file.h"
#include "capstan/checkpoint/stored_zip.h"

namespace capstan::checkpoint {
namespace {

// The opcodes of pickle's protocol 2 that a state dict needs.
class Pickle {
 public:
  Pickle() { out_ = "\x80\x02"; }

  void op(char code) { out_ += code; }
  // A class or function: "module\nname".
  void global(const std::string& name) { out_ += "c" + name + "\n"; }
  void text(const std::string& text) {
    op('X');
    little_endian(text.size(), 4);
    out_ += text;
  }
  void number(std::uint64_t value) {
    if (value <= 0xff) {
      op('K');
      little_endian(value, 1);
    } else if (value <= 0xffff) {
      op('M');
      little_endian(value, 2);
    } else if (value <= 0x7fffffff) {
      op('J');
      little_endian(value, 4);
    } else {  // 9 bytes: otherwise the highest bit would be the sign
      out_ += "\x8a\x09";
      little_endian(value, 8);
      op('\0');
    }
  }
  void tuple(std::span<const std::int64_t> numbers) {
    op(kMark);
    for (const auto n : numbers) number(static_cast<std::uint64_t>(n));
    op(kTuple);
  }
  const std::string& bytes() const { return out_; }

  static constexpr char kMark = '(', kTuple = 't', kEmptyTuple = ')', kCall = 'R', kPersistent = 'Q',
                        kFalse = '\x89', kSetItems = 'u', kStop = '.';

 private:
  void little_endian(std::uint64_t value, int width) {
    for (int i = 0; i < width; ++i) out_ += static_cast<char>(value >> (8 * i));
  }

  std::string out_;
};

void empty_ordered_dict(Pickle& pickle) {
  pickle.global("collections\nOrderedDict");
  pickle.op(Pickle::kEmptyTuple);
  pickle.op(Pickle::kCall);
}

std::vector<std::int64_t> contiguous_strides(std::span<const std::int64_t> dims) {
  std::vector<std::int64_t> strides(dims.size());
  std::int64_t step = 1;
  for (auto i = dims.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<std::int64_t>(1, dims[i]);
  }
  return strides;
}

// _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks)
void tensor(Pickle& pickle, const TensorView& t, std::size_t index) {
  pickle.global("torch._utils\n_rebuild_tensor_v2");
  pickle.op(Pickle::kMark);
  pickle.op(Pickle::kMark);
  pickle.text("storage");
  pickle.global(t.as_int64 ? "torch\nLongStorage" : "torch\nFloatStorage");
  pickle.text(std::to_string(index));  // the entry's name
  pickle.text("cpu");
  pickle.number(t.values.size());
  pickle.op(Pickle::kTuple);
  pickle.op(Pickle::kPersistent);
  pickle.number(0);
  pickle.tuple(t.dims);
  pickle.tuple(contiguous_strides(t.dims));
  pickle.op(Pickle::kFalse);
  empty_ordered_dict(pickle);
  pickle.op(Pickle::kTuple);
  pickle.op(Pickle::kCall);
}

std::string state_dict(std::span<const TensorView> tensors) {
  Pickle pickle;
  std::set<std::string> names;
  empty_ordered_dict(pickle);
  pickle.op(Pickle::kMark);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto name = as_utf8(tensors[i].name);
    CAPSTAN_CHECK(names.insert(name).second, "tensor names are unique");
    pickle.text(name);
    tensor(pickle, tensors[i], i);
  }
  pickle.op(Pickle::kSetItems);
  pickle.op(Pickle::kStop);
  return pickle.bytes();
}

}  // namespace

void write_torch_file(const std::filesystem::path& path, std::span<const TensorView> tensors) {
  for (const auto& t : tensors) check(t);
  AtomicFile file(path);
  StoredZip zip([&](std::span<const std::byte> bytes) { file.write(bytes); });
  const auto add = [&](const std::string& name, const std::string& text) {
    zip.add("archive/" + name, std::as_bytes(std::span(text)));
  };
  add("data.pkl", state_dict(tensors));
  add("byteorder", "little");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto name = fmt::format("archive/data/{}", i);
    if (tensors[i].as_int64) {
      zip.add(name, std::as_bytes(std::span<const std::int64_t>(int64_values(tensors[i]))));
    } else {
      zip.add(name, std::as_bytes(tensors[i].values));
    }
  }
  add("version", "3\n");
  zip.finish();
  file.commit();
}

}  // namespace capstan::checkpoint
