// SPDX-License-Identifier: Apache-2.0
// Linear attention and state-space models: layers whose memory of a sequence is a state of fixed size.
#pragma once
#include "flashinfer/ops/linear_attention/conv/causal_conv1d.h"
#include "flashinfer/ops/linear_attention/gdn/decode.h"
#include "flashinfer/ops/linear_attention/gdn/fused.h"
#include "flashinfer/ops/linear_attention/gdn/prefill.h"
#include "flashinfer/ops/linear_attention/kda/fused.h"
#include "flashinfer/ops/linear_attention/kda/kda.h"
#include "flashinfer/ops/linear_attention/mamba/replay.h"
#include "flashinfer/ops/linear_attention/mamba/selective_state_update.h"
#include "flashinfer/ops/linear_attention/mamba/ssd.h"
