// SPDX-License-Identifier: Apache-2.0
// use_cuda_graph: the caller's index buffers, into which plan() also writes its arrays.
#include "flashinfer/ops/mla/plan.h"

namespace flashinfer::mla {

Plan initial_plan(const BatchMlaInit& a) {
  using attention::GraphBuffers;
  attention::check_workspace(a.float_workspace_buffer);
  attention::Plan graph;  // the buffers are checked as those of the other wrappers
  const attention::GraphArgument buffers[] = {{"qo_indptr", a.qo_indptr, &GraphBuffers::qo_indptr},
                                              {"kv_indptr", a.kv_indptr, &GraphBuffers::kv_indptr},
                                              {"kv_indices", a.kv_indices, &GraphBuffers::kv_indices},
                                              {"kv_len_arr", a.kv_len_arr, &GraphBuffers::last_page_len}};
  attention::set_graph(graph, a.use_cuda_graph, buffers);
  Plan p;
  p.backend = a.backend;
  p.use_cuda_graph = a.use_cuda_graph, p.fixed_batch_size = graph.fixed_batch_size, p.buffers = graph.buffers;
  return p;
}

void fill_graph_buffers(Plan& p, const Plan& before) {
  p.backend = before.backend;
  p.use_cuda_graph = before.use_cuda_graph, p.fixed_batch_size = before.fixed_batch_size, p.buffers = before.buffers;
  if (!p.use_cuda_graph) return;
  FI_CHECK(p.batch_size == p.fixed_batch_size, ValueError, "the batch has ", p.batch_size,
           " requests, but the buffers of "
           "use_cuda_graph=True are for ",
           p.fixed_batch_size, ": pad it with empty requests");
  p.graph = before.graph;
  check_captured(p);
  attention::copy_to_buffer("qo_indptr", p.qo_indptr, p.buffers.qo_indptr);
  attention::copy_to_buffer("kv_indptr", p.kv_indptr, p.buffers.kv_indptr);
  attention::copy_to_buffer("kv_indices", p.kv_indices, p.buffers.kv_indices);
  attention::copy_to_buffer("kv_len_arr", p.kv_len, p.buffers.last_page_len);
  send_captured(p);
}

}  // namespace flashinfer::mla
