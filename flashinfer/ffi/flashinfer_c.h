/* SPDX-License-Identifier: Apache-2.0
 * The plain C interface: every op by name, with arguments by position or by name, as in its Python signature
 * (flashinfer_op_signature). Checked, logged, recorded and replayed like calls from C++.
 *
 *   const char* names[] = {NULL, NULL, "eps"};
 *   flashinfer_value values[] = {flashinfer_tensor(&x), flashinfer_tensor(&w), flashinfer_float(1e-5)};
 *   flashinfer_result* y = NULL;
 *   if (flashinfer_call("rmsnorm", names, values, 3, &y) != 0) fprintf(stderr, "%s\n", flashinfer_last_error());
 *   ... flashinfer_result_value(y)->as.tensor ...
 *   flashinfer_result_free(y);
 *
 * Objects with state (the *Wrapper classes) are constructed by flashinfer_object_new and are the first argument of
 * their methods ("BatchDecodeWithPagedKVCacheWrapper.run"). All functions may be called from any thread; one object
 * from one thread at a time. */
#ifndef FLASHINFER_FFI_FLASHINFER_C_H_
#define FLASHINFER_FFI_FLASHINFER_C_H_

#include "flashinfer/core/dlpack.h"

#pragma GCC visibility push(default)

#ifdef __cplusplus
extern "C" {
#endif

typedef struct flashinfer_object flashinfer_object;
typedef struct flashinfer_generator flashinfer_generator;
typedef struct flashinfer_result flashinfer_result;

typedef enum {
  FLASHINFER_NONE = 0,
  FLASHINFER_BOOL,
  FLASHINFER_INT,
  FLASHINFER_FLOAT,
  FLASHINFER_STRING, /* also names an element type, "bfloat16", a device or an enum's member where one is expected */
  FLASHINFER_TENSOR,
  FLASHINFER_LIST,
  FLASHINFER_TUPLE, /* several results; K and V of a paged cache */
  FLASHINFER_OBJECT,
  FLASHINFER_GENERATOR
} flashinfer_kind;

typedef struct flashinfer_value {
  flashinfer_kind kind;
  int32_t count; /* of items */
  union {
    int64_t integer; /* bool and int */
    double number;
    const char* string;
    const DLTensor* tensor; /* the memory must stay valid until the call returns; null strides: compact */
    const struct flashinfer_value* items;
    flashinfer_object* object;
    flashinfer_generator* generator;
  } as;
} flashinfer_value;

static inline flashinfer_value flashinfer_none(void) {
  flashinfer_value v;
  v.kind = FLASHINFER_NONE, v.count = 0, v.as.integer = 0;
  return v;
}
static inline flashinfer_value flashinfer_bool(int b) {
  flashinfer_value v;
  v.kind = FLASHINFER_BOOL, v.count = 0, v.as.integer = b != 0;
  return v;
}
static inline flashinfer_value flashinfer_int(int64_t i) {
  flashinfer_value v;
  v.kind = FLASHINFER_INT, v.count = 0, v.as.integer = i;
  return v;
}
static inline flashinfer_value flashinfer_float(double d) {
  flashinfer_value v;
  v.kind = FLASHINFER_FLOAT, v.count = 0, v.as.number = d;
  return v;
}
static inline flashinfer_value flashinfer_string(const char* s) {
  flashinfer_value v;
  v.kind = FLASHINFER_STRING, v.count = 0, v.as.string = s;
  return v;
}
static inline flashinfer_value flashinfer_tensor(const DLTensor* t) {
  flashinfer_value v;
  v.kind = FLASHINFER_TENSOR, v.count = 0, v.as.tensor = t;
  return v;
}
static inline flashinfer_value flashinfer_tuple(const flashinfer_value* items, int32_t n) {
  flashinfer_value v;
  v.kind = FLASHINFER_TUPLE, v.count = n, v.as.items = items;
  return v;
}
static inline flashinfer_value flashinfer_self(flashinfer_object* o) {
  flashinfer_value v;
  v.kind = FLASHINFER_OBJECT, v.count = 0, v.as.object = o;
  return v;
}

/* Return value of a function: 0, or the kind of the error. */
typedef enum {
  FLASHINFER_OK = 0,
  FLASHINFER_VALUE_ERROR,
  FLASHINFER_TYPE_ERROR,
  FLASHINFER_KEY_ERROR,
  FLASHINFER_RUNTIME_ERROR,
  FLASHINFER_NOT_IMPLEMENTED_ERROR,
  FLASHINFER_ASSERTION_ERROR,
  FLASHINFER_INTERNAL_ERROR
} flashinfer_status;
/* "ValueError: rmsnorm: weight.shape[0] is 3, but d is 4 (from input.shape[1])": of this thread's last call that
 * failed; valid until the next failure. Never null. */
const char* flashinfer_last_error(void);

/* Runs an op. names[i] is null for positional arguments, which come first. `result` (which may be null) receives a
 * value that the caller frees, or null when the call failed. Tensors passed as `out` are written and also returned. */
flashinfer_status flashinfer_call(const char* op, const char* const* names, const flashinfer_value* values, int32_t n,
                                  flashinfer_result** result);
/* None, a tensor, or a tuple of tensors; valid until flashinfer_result_free, and so is memory that the library
 * allocated for them. */
const flashinfer_value* flashinfer_result_value(const flashinfer_result* result);
/* Tensor `index` as a separate capsule, which may outlive the result; the caller runs its deleter. Null: no such
 * tensor. */
DLManagedTensorVersioned* flashinfer_result_dlpack(const flashinfer_result* result, int32_t index);
void flashinfer_result_free(flashinfer_result* result);

/* `ClassName.__init__` with these arguments (without self). The caller frees the object. */
flashinfer_status flashinfer_object_new(const char* class_name, const char* const* names,
                                        const flashinfer_value* values, int32_t n, flashinfer_object** object);
void flashinfer_object_free(flashinfer_object* object);
/* A counter-based random generator; sampling ops advance it. */
flashinfer_generator* flashinfer_generator_new(uint64_t seed, uint64_t offset);
void flashinfer_generator_free(flashinfer_generator* generator);

/* The registry. */
int32_t flashinfer_op_count(void);
const char* flashinfer_op_name(int32_t index);       /* null: no such op */
const char* flashinfer_op_signature(const char* op); /* null: no such op; valid until this thread's next call */
const char* flashinfer_version(void);
const char* flashinfer_commit(void); /* git commit, 12 digits, or "unknown" */
/* All ops with their arguments as one JSON array (keys: ffi/describe.h); lives as long as the library. For languages
 * that generate functions from it. */
const char* flashinfer_describe_ops(void);

/* The environment of the Python that runs this process (sys.prefix): NVIDIA's wheels are searched there, too. */
void flashinfer_set_python_prefix(const char* prefix);
/* A folder of precompiled kernels (`flashinfer aot`) that is looked up after FLASHINFER_AOT_DIR, from the next lookup
 * on. */
void flashinfer_add_precompiled_folder(const char* folder);

/* 1 when calls are logged or recorded; reads the environment, as the first call would, if that was not done yet. */
int flashinfer_observed(void);
/* Starts the log or the recorder. `level` as FLASHINFER_LOGLEVEL (10 records); `dump_dir` null: unchanged. */
flashinfer_status flashinfer_record_start(int32_t level, const char* dump_dir);
flashinfer_status flashinfer_record_stop(void);
/* One "name=value", as in the control file of docs/recorder.md ("While the program runs"). */
flashinfer_status flashinfer_record_set(const char* setting);
/* The effective level. */
int32_t flashinfer_record_level(void);
/* From the second call on: starts as a new process would and reads the environment again. For a language whose
 * packages can be reloaded while the library stays loaded. */
flashinfer_status flashinfer_record_restart(void);
/* Writes the pending records of calls captured into a CUDA graph (flashinfer/record/record.h); returns the number of
 * entries, -1 on an error. `graph`: the driver's id of one capture, 0 for all. */
int64_t flashinfer_flush_graph_dumps(int32_t synchronize, uint64_t graph);
/* Drops the pending records; returns the number of entries. */
int64_t flashinfer_clear_graph_dumps(void);
/* The version of other software in this process ("torch"), for the log's banner and the recordings. */
flashinfer_status flashinfer_add_version(const char* name, const char* version);

/* Sets an executor with `threads` threads for calls of this thread: `run` executes task(arg, 0..n-1), on any threads,
 * and returns when all are done. Null restores the library's own pool. */
typedef void (*flashinfer_task)(void* arg, int64_t index);
typedef void (*flashinfer_run_tasks)(void* self, int64_t n, flashinfer_task task, void* arg);
void flashinfer_set_executor(flashinfer_run_tasks run, void* self, int32_t threads);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif /* FLASHINFER_FFI_FLASHINFER_C_H_ */
