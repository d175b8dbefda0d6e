// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "flashinfer/formats/pickle.h"

namespace flashinfer::formats {
namespace {

/// torch's name of the typed storage, or null for types that torch rebuilds from untyped storage.
const char* storage_class(DType t) {
  switch (t) {
    case DType::kF32: return "FloatStorage";
    case DType::kF64: return "DoubleStorage";
    case DType::kF16: return "HalfStorage";
    case DType::kBF16: return "BFloat16Storage";
    case DType::kU8: return "ByteStorage";
    case DType::kI8: return "CharStorage";
    case DType::kI16: return "ShortStorage";
    case DType::kI32: return "IntStorage";
    case DType::kI64: return "LongStorage";
    case DType::kBool: return "BoolStorage";
    default: return nullptr;
  }
}

/// The opcodes of CPython's pickler at protocol 2, its numbering of the memo included.
class Pickler {
 public:
  std::string out = "\x80\x02";

  void global(const std::string& module, const std::string& name) {
    memoized("c" + module + "\n" + name + "\n", [&] { out += "c" + module + "\n" + name + "\n"; });
  }
  /// A string that is one object wherever it occurs ("cpu", "storage", the number of a storage).
  void shared(const std::string& s) {
    memoized("X" + s, [&] { unicode(s); });
  }
  void string(const std::string& s) {
    unicode(s);
    put(next_++);
  }
  void integer(int64_t v) {
    if (v >= 0 && v < 256) {
      out += 'K', fixed(v, 1);
    } else if (v >= 0 && v < 65536) {
      out += 'M', fixed(v, 2);
    } else if (v >= INT32_MIN && v <= INT32_MAX) {
      out += 'J', fixed(v, 4);
    } else {
      int n = 8;  // the shortest two's complement that keeps the sign
      while (n > 1 && (v >> (8 * (n - 1) - 1) == 0 || v >> (8 * (n - 1) - 1) == -1)) --n;
      out += "\x8a", fixed(n, 1), fixed(v, n);
    }
  }
  void tuple(std::span<const int64_t> values) {
    if (values.empty()) {
      out += ')';
      return;
    }
    if (values.size() > 3) out += '(';
    for (int64_t v : values) integer(v);
    close_tuple(values.size());
  }
  void close_tuple(size_t n) {
    constexpr const char* kCodes[] = {"", "\x85", "\x86", "\x87"};
    out += n <= 3 ? kCodes[n] : "t";
    remember();
  }
  void remember() { put(next_++); }

 private:
  template <class F>
  void memoized(const std::string& id, F write) {
    const auto [it, fresh] = memo_.emplace(id, next_);
    if (fresh) {
      write();
      put(next_++);
    } else if (it->second < 256) {
      out += 'h', fixed(it->second, 1);
    } else {
      out += 'j', fixed(it->second, 4);
    }
  }
  void unicode(const std::string& s) {
    out += 'X';
    fixed(static_cast<int64_t>(s.size()), 4);
    out += s;
  }
  void put(int64_t index) { index < 256 ? (out += 'q', fixed(index, 1)) : (out += 'r', fixed(index, 4)); }
  void fixed(int64_t v, int bytes) {
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(v >> (8 * i));
  }
  std::map<std::string, int64_t> memo_;
  int64_t next_ = 0;
};

void tensor(Pickler& p, const NamedTensor& t, const Placement& at, const Storage& storage) {
  const char* typed = storage.mixed ? nullptr : storage_class(t.view.dtype());
  p.global("torch._utils", typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
  p.out += "((";
  p.shared("storage");
  p.global(typed ? "torch" : "torch.storage", typed ? typed : "UntypedStorage");
  p.shared(std::to_string(at.storage));
  p.shared("cpu");
  p.integer(typed ? storage.bytes / t.view.item_size() : storage.bytes);
  p.close_tuple(5);
  p.out += 'Q';
  p.integer(at.offset);
  p.tuple(t.view.shape());
  p.tuple(at.strides);
  p.out += t.requires_grad ? '\x88' : '\x89';
  p.global("collections", "OrderedDict");
  p.out += ")R";
  p.remember();
  if (!typed) p.global("torch", std::string(name(t.view.dtype())));
  p.close_tuple(7);
  p.out += 'R';
  p.remember();
}

}  // namespace

std::string pickle_tensors(std::span<const NamedTensor> tensors, const StoragePlan& plan) {
  constexpr size_t kBatch = 1000;  // CPython's pickler writes a dict in batches
  Pickler p;
  p.out += '}';
  p.remember();
  for (size_t i = 0; i < tensors.size(); i += kBatch) {
    const size_t end = std::min(tensors.size(), i + kBatch);
    const bool several = end - i > 1;
    if (several) p.out += '(';
    for (size_t k = i; k < end; ++k) {
      p.string(tensors[k].key);
      tensor(p, tensors[k], plan.placements[k], plan.storages[static_cast<size_t>(plan.placements[k].storage)]);
    }
    p.out += several ? 'u' : 's';
  }
  p.out += '.';
  return std::move(p.out);
}

}  // namespace flashinfer::formats
