// SPDX-License-Identifier: Apache-2.0
// Attention. Query row i of a request with `qo_len` rows and `kv_len` keys has position i + kv_len - qo_len. `causal`
// makes the keys up to its position visible, `window_left` = w >= 0 only those at most w before it (a window of N
// tokens including the current one is w = N - 1), `custom_mask` replaces `causal` and is ANDed with the window.
//   logit = sm_scale * q_scale * k_scale * <q, k>
//   ALiBi: logit += slope_h * (key - row), with the slopes of num_qo_heads heads or alibi_slopes
//   cap:   logit = cap * tanh(logit / cap)
// A sink z_h is added to every row's denominator: exp(z_h) is added to sum_j exp(logit_j), also in the LSE.
//   out = v_scale * sum_j softmax(logit)_j v_j;  lse = log2 sum_j exp(logit_j)  (base 2)
// A row without visible keys gives zeros and -inf. Unused slots of a page are never read, and the content of a key,
// even NaN, does not affect rows for which it is masked. q is f32|f16|bf16 or an 8-bit float, K and V too, or NVFP4;
// sums are in f32.
//
// An 8-bit q is converted exactly before it is multiplied (to K's type, or bf16 where that is narrower) and gives bf16
// unless the caller names another type; outputs are never 8-bit. scale_q [Hq], scale_k [Hkv] and scale_v [Hkv], f32,
// are further factors for each head: arguments of single_prefill and of block-sparse runs; of batch runs with an 8-bit
// q the three positional `args`.
//
// Results do not depend on the batch, the page size or threads, bit for bit. Requests of at most 8 query tokens
// (decode) and longer ones (prefill) are summed in two different orders: a decode row equals the prefill row of its
// position within rounding, and prefills of more than 8 tokens do not depend on how a prompt is split. Any head dims,
// group sizes, page sizes and strides (last dimension contiguous).
//
// Errors: ValueError for shapes, page ids outside the pool, last_page_len outside 1..page_size, indptr that decreases,
// masks of a wrong size, q or K/V that differ from the plan; KeyError for an unknown kv_layout or pos_encoding_mode;
// AssertionError for run() before plan() or a window_left other than the plan's; NotImplementedError, naming the
// argument, for unsupported values. Hints for GPU schedules (use_tensor_cores, non_blocking, fixed_split_size,
// disable_split_kv, use_fp16_qk_reduction, ...) are accepted and ignored: they affect only the speed of FlashInfer's
// kernels.
#pragma once
#include "flashinfer/ops/attention/api/batch.h"
#include "flashinfer/ops/attention/api/cudnn.h"
#include "flashinfer/ops/attention/api/decode.h"
#include "flashinfer/ops/attention/api/dense.h"
#include "flashinfer/ops/attention/api/prefill.h"
#include "flashinfer/ops/attention/api/ragged.h"
#include "flashinfer/ops/attention/api/ranges.h"
#include "flashinfer/ops/attention/api/single.h"
#include "flashinfer/ops/attention/api/varlen.h"
#include "flashinfer/ops/attention/api/xqa.h"
#include "flashinfer/ops/attention/variant/custom.h"
