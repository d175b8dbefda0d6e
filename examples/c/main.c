/* SPDX-License-Identifier: Apache-2.0
 * One decode step from plain C: two requests, a paged KV cache, plan once and run once, checked against a plain loop.
 *   cc main.c -lflashinfer -lm && ./a.out */
#include <flashinfer/ffi/flashinfer_c.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRequests = 2, kHeads = 4, kKvHeads = 2, kDim = 64, kPageSize = 4, kPages = 5 };

static float q[kRequests][kHeads][kDim];
static float pool[kPages][2][kPageSize][kKvHeads][kDim]; /* K, then V; layout NHD */
static int32_t indptr[kRequests + 1] = {0, 3, 5};        /* request 0 has pages 4 1 0, request 1 has pages 2 3 */
static int32_t pages[] = {4, 1, 0, 2, 3};
static int32_t last_page_len[kRequests] = {2, 3};

static void check(flashinfer_status status) {
  if (status == FLASHINFER_OK) return;
  fprintf(stderr, "%s\n", flashinfer_last_error());
  exit(1);
}

static DLTensor tensor(void* data, DLDataTypeCode code, int bits, int ndim, int64_t* shape) {
  DLTensor t = {0};
  t.data = data;
  t.device.device_type = kDLCPU;
  t.ndim = ndim;
  t.dtype.code = (uint8_t)code;
  t.dtype.bits = (uint8_t)bits;
  t.dtype.lanes = 1;
  t.shape = shape;
  return t;
}

/* softmax(q k / sqrt(d)) v of one head, in double */
static void expected(int request, int head, double out[kDim]) {
  const int kv_head = head / (kHeads / kKvHeads);
  const int tokens = (indptr[request + 1] - indptr[request] - 1) * kPageSize + last_page_len[request];
  double sum = 0, weight;
  int d, t;
  for (d = 0; d < kDim; ++d) out[d] = 0;
  for (t = 0; t < tokens; ++t) {
    float(*page)[kPageSize][kKvHeads][kDim] = pool[pages[indptr[request] + t / kPageSize]];
    double logit = 0;
    for (d = 0; d < kDim; ++d) logit += (double)q[request][head][d] * page[0][t % kPageSize][kv_head][d];
    weight = exp(logit / sqrt(kDim));
    sum += weight;
    for (d = 0; d < kDim; ++d) out[d] += weight * page[1][t % kPageSize][kv_head][d];
  }
  for (d = 0; d < kDim; ++d) out[d] /= sum;
}

int main(void) {
  int64_t q_shape[] = {kRequests, kHeads, kDim}, pool_shape[] = {kPages, 2, kPageSize, kKvHeads, kDim};
  int64_t indptr_shape[] = {kRequests + 1}, pages_shape[] = {5}, last_shape[] = {kRequests}, workspace_shape[] = {0};
  DLTensor q_t = tensor(q, kDLFloat, 32, 3, q_shape), pool_t = tensor(pool, kDLFloat, 32, 5, pool_shape);
  DLTensor indptr_t = tensor(indptr, kDLInt, 32, 1, indptr_shape), pages_t = tensor(pages, kDLInt, 32, 1, pages_shape);
  DLTensor last_t = tensor(last_page_len, kDLInt, 32, 1, last_shape),
           workspace_t = tensor(NULL, kDLUInt, 8, 1, workspace_shape);
  float* values = &q[0][0][0];
  size_t i;
  for (i = 0; i < sizeof q / sizeof(float); ++i) values[i] = (float)sin(0.37 * (double)i);
  values = &pool[0][0][0][0][0];
  for (i = 0; i < sizeof pool / sizeof(float); ++i) values[i] = (float)cos(0.11 * (double)i);

  flashinfer_object* decode = NULL;
  const flashinfer_value init[] = {flashinfer_tensor(&workspace_t), flashinfer_string("NHD")};
  check(flashinfer_object_new("BatchDecodeWithPagedKVCacheWrapper", NULL, init, 2, &decode));

  const char* plan_names[] = {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "q_data_type"};
  const flashinfer_value plan[] = {
      flashinfer_self(decode),    flashinfer_tensor(&indptr_t), flashinfer_tensor(&pages_t),
      flashinfer_tensor(&last_t), flashinfer_int(kHeads),       flashinfer_int(kKvHeads),
      flashinfer_int(kDim),       flashinfer_int(kPageSize),    flashinfer_string("float32")};
  check(flashinfer_call("BatchDecodeWithPagedKVCacheWrapper.plan", plan_names, plan, 9, NULL));

  flashinfer_result* result = NULL;
  const flashinfer_value run[] = {flashinfer_self(decode), flashinfer_tensor(&q_t), flashinfer_tensor(&pool_t)};
  check(flashinfer_call("BatchDecodeWithPagedKVCacheWrapper.run", NULL, run, 3, &result));

  const flashinfer_value* out = flashinfer_result_value(result);
  const float* o = (const float*)out->as.tensor->data;
  double worst = 0, reference[kDim];
  int request, head, d;
  for (request = 0; request < kRequests; ++request)
    for (head = 0; head < kHeads; ++head) {
      expected(request, head, reference);
      for (d = 0; d < kDim; ++d) worst = fmax(worst, fabs(o[(request * kHeads + head) * kDim + d] - reference[d]));
    }
  printf("flashinfer %s: decoded %d requests, out[0][0][0] = %.6f, largest error %.2g\n", flashinfer_version(),
         kRequests, o[0], worst);

  /* An error's text names the argument and both values. */
  const flashinfer_value wrong[] = {flashinfer_self(decode), flashinfer_tensor(&pool_t), flashinfer_tensor(&pool_t)};
  if (flashinfer_call("BatchDecodeWithPagedKVCacheWrapper.run", NULL, wrong, 3, NULL) == FLASHINFER_OK) return 1;
  printf("and the error for a wrong q: %s\n", flashinfer_last_error());
  flashinfer_result_free(result);
  flashinfer_object_free(decode);
  return worst < 1e-5 ? 0 : 1;
}
