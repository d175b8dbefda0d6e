// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/formats/layout.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

namespace flashinfer::formats {
namespace {

constexpr size_t kPiece = 256 << 10;

struct Extent {
  int index;
  uintptr_t begin, end;  // of the memory the elements span; empty views have begin == end
  int64_t logical;       // bytes of the elements
};

bool has_negative_stride(const TensorView& v) {
  for (int i = 0; i < v.rank(); ++i)
    if (v.stride(i) < 0 && v.size(i) > 1) return true;
  return false;
}

class Planner {
 public:
  explicit Planner(std::span<const NamedTensor> tensors) : tensors_(tensors), plan_{{}, {}} {
    plan_.placements.resize(tensors.size(), Placement{-1, 0, {}});
  }

  StoragePlan run() {
    std::vector<Extent> extents;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const TensorView& v = tensors_[i].view;
      FI_CHECK(v.device().type != DeviceType::kCUDA, ValueError, tensors_[i].key, " is on ", to_string(v.device()),
               ", and only memory of the host can be written");
      if (v.numel() == 0 || has_negative_stride(v)) continue;
      const auto begin = reinterpret_cast<uintptr_t>(v.data());
      extents.push_back({static_cast<int>(i), begin, begin + static_cast<uintptr_t>(v.span_bytes()), v.nbytes()});
    }
    std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
      return std::pair(a.begin, a.index) < std::pair(b.begin, b.index);
    });
    for (size_t i = 0; i < extents.size();) {
      size_t j = i + 1;
      uintptr_t end = extents[i].end;
      for (; j < extents.size() && extents[j].begin < end; ++j) end = std::max(end, extents[j].end);
      place_group(std::span(extents).subspan(i, j - i));
      i = j;
    }
    for (size_t i = 0; i < tensors_.size(); ++i)
      if (plan_.placements[i].storage < 0) gather(static_cast<int>(i));
    renumber();
    return std::move(plan_);
  }

 private:
  /// Puts the extents into one storage if that stores (almost) no byte that none of them needs.
  bool share(std::span<const Extent> group) {
    uintptr_t begin = group[0].begin, end = 0;
    int64_t logical = 0;
    for (const Extent& e : group) begin = std::min(begin, e.begin), end = std::max(end, e.end), logical += e.logical;
    if (static_cast<int64_t>(end - begin) > logical) return false;
    const DType dtype = tensors_[group[0].index].view.dtype();
    bool mixed = false;
    for (const Extent& e : group) {
      const TensorView& v = tensors_[e.index].view;
      if ((e.begin - begin) % static_cast<uintptr_t>(v.item_size()) != 0) return false;
      if ((end - begin) % static_cast<uintptr_t>(v.item_size()) != 0) return false;
      mixed |= v.dtype() != dtype;
    }
    for (const Extent& e : group) {
      const TensorView& v = tensors_[e.index].view;
      plan_.placements[e.index] = {static_cast<int>(plan_.storages.size()),
                                   static_cast<int64_t>(e.begin - begin) / v.item_size(),
                                   {v.strides().begin(), v.strides().end()}};
    }
    plan_.storages.push_back(
        {reinterpret_cast<const uint8_t*>(begin), static_cast<int64_t>(end - begin), false, {}, dtype, mixed});
    return true;
  }

  /// One storage if possible; otherwise each view without gaps becomes a storage that includes the views inside it.
  void place_group(std::span<Extent> group) {
    if (share(group)) return;
    std::sort(group.begin(), group.end(), [](const Extent& a, const Extent& b) {
      return std::pair(b.end - b.begin, a.index) < std::pair(a.end - a.begin, b.index);  // the longest first
    });
    for (const Extent& owner : group) {
      if (plan_.placements[owner.index].storage >= 0) continue;
      if (static_cast<int64_t>(owner.end - owner.begin) > owner.logical) continue;
      std::vector<Extent> inside{owner};
      for (const Extent& e : group)
        if (e.index != owner.index && e.begin >= owner.begin && e.end <= owner.end &&
            plan_.placements[e.index].storage < 0)
          inside.push_back(e);
      if (!share(inside)) share({&owner, 1});
    }
  }

  void gather(int index) {
    const TensorView& v = tensors_[index].view;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const Placement& p = plan_.placements[i];
      if (v.numel() == 0 || static_cast<int>(i) == index || p.storage < 0) continue;
      if (plan_.storages[p.storage].gather && tensors_[i].view.same_elements(v)) {
        plan_.placements[index] = p;
        return;
      }
    }
    Placement p{static_cast<int>(plan_.storages.size()), 0, {v.strides().begin(), v.strides().end()}};
    if (v.numel() != 0) {
      int64_t stride = 1;
      for (int d = v.rank() - 1; d >= 0; stride *= v.size(d), --d) p.strides[d] = stride;
    }
    plan_.placements[index] = std::move(p);
    plan_.storages.push_back({nullptr, v.nbytes(), true, v, v.dtype(), false});
  }

  /// Numbers storages in the order in which the tensors refer to them, as torch does.
  void renumber() {
    std::vector<int> order(plan_.storages.size(), -1);
    std::vector<Storage> sorted;
    for (Placement& p : plan_.placements) {
      if (order[p.storage] < 0) {
        order[p.storage] = static_cast<int>(sorted.size());
        sorted.push_back(plan_.storages[p.storage]);
        sorted.back().dtype = tensors_[&p - plan_.placements.data()].view.dtype();
      }
      p.storage = order[p.storage];
    }
    plan_.storages = std::move(sorted);
  }

  std::span<const NamedTensor> tensors_;
  StoragePlan plan_;
};

void stream_memory(const uint8_t* data, int64_t bytes, const ByteSink& sink) {
  for (int64_t done = 0; done < bytes; done += kPiece)
    sink(data + done, static_cast<size_t>(std::min<int64_t>(kPiece, bytes - done)));
}

}  // namespace

StoragePlan plan_storages(std::span<const NamedTensor> tensors) { return Planner(tensors).run(); }

void stream(const Storage& s, const ByteSink& sink) {
  if (s.gather) return stream(s.view, sink);
  stream_memory(s.data, s.bytes, sink);
}

void stream(const TensorView& v, const ByteSink& sink) {
  if (v.numel() == 0) return;
  if (v.is_contiguous()) return stream_memory(v.data_as<const uint8_t>(), v.nbytes(), sink);
  // Compact inner dimensions form a run; the others are iterated like an odometer.
  const int64_t item = v.item_size();
  int outer = v.rank();
  int64_t run = item;
  while (outer > 0 && (v.size(outer - 1) == 1 || v.stride(outer - 1) * item == run)) run *= v.size(--outer);
  std::array<int64_t, TensorView::kMaxRank> at{};
  const auto buffer = std::make_unique<uint8_t[]>(kPiece);
  size_t filled = 0;
  const uint8_t* p = v.data_as<const uint8_t>();
  const auto emit = [&] {
    if (filled > 0) sink(buffer.get(), filled);
    filled = 0;
  };
  for (;;) {
    if (static_cast<size_t>(run) >= kPiece / 4) {
      emit();
      stream_memory(p, run, sink);
    } else {
      if (filled + static_cast<size_t>(run) > kPiece) emit();
      std::memcpy(buffer.get() + filled, p, static_cast<size_t>(run));
      filled += static_cast<size_t>(run);
    }
    int d = outer - 1;
    for (; d >= 0; --d) {
      p += v.stride(d) * item;
      if (++at[d] < v.size(d)) break;
      p -= at[d] * v.stride(d) * item;
      at[d] = 0;
    }
    if (d < 0) break;
  }
  emit();
}

}  // namespace flashinfer::formats
