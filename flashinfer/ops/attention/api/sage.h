// SPDX-License-Identifier: Apache-2.0
// Ragged attention whose query, key and value have 8 bits with scales of blocks (SageAttention), or whose value alone
// has 8 bits. Internal to the family.
#pragma once
#include <memory>

#include "flashinfer/ops/attention/api/varlen.h"
#include "flashinfer/ops/attention/run.h"

namespace flashinfer::attention {

/// Checks sage_attn_sfs and num_elts_per_sage_attn_blk against the tensors, and what types go together.
void check_sage(const TrtllmRaggedDeepseek& a);
/// Whether attention takes the tensors as they are.
bool is_multiplied(const TrtllmRaggedDeepseek& a);
/// `a` with tensors of the types in which attention multiplies, over the caller's memory: for shapes, not to be read.
TrtllmRaggedDeepseek with_multiplied_types(const TrtllmRaggedDeepseek& a);

/// The same call on copies in those types; an operand that has its type already is the caller's.
struct Dequantized {
  explicit Dequantized(const TrtllmRaggedDeepseek& a);
  Dequantized(const Dequantized&) = delete;
  /// Writes the copies.
  void fill() const;
  /// The same by plain loops in double precision.
  void fill_reference() const;

  TrtllmRaggedDeepseek call;

 private:
  struct Operand {
    TensorView from;
    Tensor to;  // undefined: `from` is used as it is
    const TensorView *scales = nullptr, *cum = nullptr;
    int64_t block = 0;  // tokens that share a scale; 0: every channel has its own
    int64_t column(int64_t token) const;
  };
  Operand operands_[3];
};

/// The candidates `Of` of the op, on copies.
template <class Of>
struct DequantizedRun {
  static op::Prepared cpu(const TrtllmRaggedDeepseek& a) {
    const auto copies = std::make_shared<const Dequantized>(a);
    const std::shared_ptr<op::Prepared> launch(new op::Prepared(Of::cpu(copies->call)));
    if (!launch->supported()) return op::Unsupported{launch->why_not()};
    return [copies, launch] {
      copies->fill();
      launch->run();
    };
  }
  static void reference(const TrtllmRaggedDeepseek& a) {
    const Dequantized copies(a);
    copies.fill_reference();
    Of::reference(copies.call);
  }
};

}  // namespace flashinfer::attention
