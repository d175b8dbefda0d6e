// SPDX-License-Identifier: Apache-2.0
// The one way a call goes: notify the observer -> schema check -> select -> run -> notify the observer.
#pragma once
#include <array>
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

#include "flashinfer/op/index_checks.h"
#include "flashinfer/op/observer.h"
#include "flashinfer/op/op.h"
#include "flashinfer/op/owned_block.h"
#include "flashinfer/op/select.h"

#pragma GCC visibility push(default)

namespace flashinfer::op {

/// What an op returned: its tensors in the table's order, without those that were not requested.
class Results {
 public:
  void push(Tensor t, const Field* f = nullptr) {
    if (count_ < kInline)
      first_[static_cast<size_t>(count_)] = {std::move(t), f};
    else
      rest_.push_back({std::move(t), f});
    ++count_;
  }
  int size() const { return count_; }
  const Tensor& operator[](int i) const { return item(i).tensor; }
  operator Tensor() const { return first_[0].tensor; }
  operator std::pair<Tensor, Tensor>() const { return {first_[0].tensor, first_[1].tensor}; }
  operator std::tuple<Tensor, Tensor, Tensor>() const { return {first_[0].tensor, first_[1].tensor, first_[2].tensor}; }
  /// Which output tensor i is.
  const Field* field(int i) const { return item(i).field; }
  /// None, the tensor, or a tuple, as Python's function returns: with numbers, slices and tuples of their own where the
  /// table says so. `tensor(i)` stands for the i-th tensor.
  Value value(const std::function<Value(int)>& tensor) const;
  Value value() const;

 private:
  struct Item {
    Tensor tensor;
    const Field* field = nullptr;
  };
  const Item& item(int i) const {
    return i < kInline ? first_[static_cast<size_t>(i)] : rest_[static_cast<size_t>(i - kInline)];
  }
  static constexpr int kInline = 4;  // nearly all ops: no allocation
  std::array<Item, kInline> first_;
  std::vector<Item> rest_;
  int count_ = 0;
};

/// Runs `op` on `block` (of the op's block type), filling in absent outputs. `passed` is given by other languages.
Results run(const Op& op, void* block, const Passed* passed = nullptr);

namespace detail {
/// The same without looking for an observer (bench/call_path.cc compares the two).
Results run_unobserved(const Op& op, void* block);
}  // namespace detail

template <class Block>
Results call(const Op& op, const Block& args) {
  Block block = args;
  return run(op, &block);
}

/// A call by name: values are bound to the signature (TypeError as Python: missing, unexpected, multiple values),
/// converted to the block and run. Returns what the Python function returns.
Value call_values(const Op& op, const Passed& passed);

/// A block made from values, for replay, cases and other languages.
class Block {
 public:
  explicit Block(const Op& op) : op_(&op), block_(op.block) {}
  void* data() const { return block_.data(); }
  const Op& op() const { return *op_; }
  /// Sets the field by public name; the value's owner (if any) is kept alive with the block.
  void set(std::string_view name, const Value& v);
  void bind(const Passed& passed);

 private:
  const Op* op_;
  OwnedBlock<> block_;
  std::vector<Value> keep_;
};

/// Checks, allocates absent outputs and selects, without launching: which candidate would run, and every rejection on
/// the way.
struct Selection {
  const Candidate* candidate = nullptr;
  std::vector<Rejection> rejections;
};
Selection explain(const Op& op, const void* block);

/// The outputs of a call of this block, in order, returned or not, without computing or allocating anything: what a
/// compiler of programs needs. Checks shapes and dtypes, not values: tensors may lack their content, but not their
/// memory when the op's shapes depend on it. An extent that only the content of a tensor tells is kAnyExtent.
struct OutputType {
  const Field* field;
  Shape shape;
  DType dtype;
};
std::vector<OutputType> infer_outputs(const Op& op, const void* block);
inline constexpr int64_t kAnyExtent = -1;
/// True inside infer_outputs, for shape functions that would read a tensor's content.
bool inferring();

/// For observers, in before(): this call waits for the device after its launch, so that an asynchronous fault is its
/// own.
void wait_after_launch();

}  // namespace flashinfer::op

#pragma GCC visibility pop
