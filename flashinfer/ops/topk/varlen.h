// SPDX-License-Identifier: Apache-2.0
// Top-k of rows of several lengths.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// The positions of the top_k largest logits of each row, in order of position; equal values are ranked by the smaller
/// index, NaN below everything. Row t of request i (row i * next_n + t) ranks its first
/// max(0, floor((seq_lens[i] - next_n + t + 1) / compress_ratio)) logits, at most all of them. A row of fewer gives all
/// positions, then -1, with values of 0. Returns (indices, values); without return_values the second is None in Python.
/// ValueError: next_n or compress_ratio below 1, rows that next_n does not divide, seq_lens of a wrong length.
struct TopKVarlen {
  TensorView logits;    // [rows, d] f32|f16|bf16, rows may be strided
  TensorView seq_lens;  // [rows / next_n] i32|i64, in KV tokens
  int64_t top_k = 0;
  std::optional<TensorView> pre_idx{};  // a hint of GPU kernels: without effect
  int64_t compress_ratio = 1;           // KV tokens of a logit
  int64_t next_n = 1;                   // rows of a request
  bool return_values = false;
  std::optional<TensorView> out_indices{};  // [rows, top_k] i32
  std::optional<TensorView> out_values{};   // [rows, top_k] as logits
  std::string backend = "auto";
  bool load_balance = true;  // of GPU kernels: without effect
  op::Value workspace{};     // likewise
};
op::Results top_k_varlen(const TopKVarlen& args);

}  // namespace flashinfer

#pragma GCC visibility pop
