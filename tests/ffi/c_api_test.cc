// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ffi/flashinfer_c.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "test_paths.h"
#include "tests/formats/temp_dir.h"

namespace {

/// A float32 tensor of C memory.
struct Floats {
  std::vector<float> data;
  std::vector<int64_t> shape;
  DLTensor t{};
  Floats(std::vector<int64_t> extents, float step) : shape(std::move(extents)) {
    int64_t n = 1;
    for (const int64_t e : shape) n *= e;
    for (int64_t i = 0; i < n; ++i) data.push_back(step * static_cast<float>(i) - 1);
    t = {data.data(), {kDLCPU, 0}, static_cast<int32_t>(shape.size()), {kDLFloat, 32, 1}, shape.data(), nullptr, 0};
  }
};

float rms(const Floats& x, const Floats& w, int64_t row, int64_t column, double eps) {
  const int64_t d = x.shape[1];
  double squares = 0;
  for (int64_t i = 0; i < d; ++i) squares += std::pow(x.data[static_cast<size_t>(row * d + i)], 2);
  return static_cast<float>(x.data[static_cast<size_t>(row * d + column)] /
                            std::sqrt(squares / static_cast<double>(d) + eps) * w.data[static_cast<size_t>(column)]);
}

TEST(CApi, CallsAnOpByPositionAndByName) {
  Floats x({3, 32}, 0.05f), w({32}, 0.1f);
  const char* names[] = {nullptr, nullptr, "eps"};
  const flashinfer_value values[] = {flashinfer_tensor(&x.t), flashinfer_tensor(&w.t), flashinfer_float(1e-3)};
  flashinfer_result* result = nullptr;
  ASSERT_EQ(flashinfer_call("rmsnorm", names, values, 3, &result), FLASHINFER_OK) << flashinfer_last_error();
  const flashinfer_value* v = flashinfer_result_value(result);
  ASSERT_EQ(v->kind, FLASHINFER_TENSOR);
  ASSERT_EQ(v->as.tensor->ndim, 2);
  EXPECT_EQ(v->as.tensor->shape[1], 32);
  EXPECT_EQ(v->as.tensor->strides[0], 32);
  const auto* y = static_cast<const float*>(v->as.tensor->data);
  for (int64_t r = 0; r < 3; ++r)
    for (int64_t c = 0; c < 32; ++c) ASSERT_NEAR(y[r * 32 + c], rms(x, w, r, c, 1e-3), 1e-5);

  DLManagedTensorVersioned* capsule = flashinfer_result_dlpack(result, 0);
  ASSERT_NE(capsule, nullptr);
  EXPECT_EQ(flashinfer_result_dlpack(result, 1), nullptr);
  const float first = y[0];
  flashinfer_result_free(result);
  EXPECT_EQ(static_cast<const float*>(capsule->dl_tensor.data)[0], first);  // it outlives the result
  capsule->deleter(capsule);
}

TEST(CApi, WritesIntoAnOutputOfTheCaller) {
  Floats x({2, 16}, 0.1f), w({16}, 0.1f), out({2, 16}, 0);
  const char* names[] = {nullptr, nullptr, "out"};
  const flashinfer_value values[] = {flashinfer_tensor(&x.t), flashinfer_tensor(&w.t), flashinfer_tensor(&out.t)};
  ASSERT_EQ(flashinfer_call("rmsnorm", names, values, 3, nullptr), FLASHINFER_OK) << flashinfer_last_error();
  EXPECT_NEAR(out.data[5], rms(x, w, 0, 5, 1e-6), 1e-5);
}

TEST(CApi, ErrorsAreStatusAndSentence) {
  Floats x({2, 16}, 0.1f), w({8}, 0.1f);
  flashinfer_result* result = reinterpret_cast<flashinfer_result*>(1);
  const flashinfer_value values[] = {flashinfer_tensor(&x.t), flashinfer_tensor(&w.t)};
  EXPECT_EQ(flashinfer_call("rmsnorm", nullptr, values, 2, &result), FLASHINFER_VALUE_ERROR);
  EXPECT_EQ(result, nullptr);
  EXPECT_STREQ(flashinfer_last_error(), "ValueError: rmsnorm: weight.shape[0] is 8, but d is 16 (from input.shape[1])");
  EXPECT_EQ(flashinfer_call("rmsnrom", nullptr, values, 2, nullptr), FLASHINFER_VALUE_ERROR);
  EXPECT_STREQ(flashinfer_last_error(), "ValueError: there is no op 'rmsnrom'; did you mean 'rmsnorm'?");
  EXPECT_EQ(flashinfer_call("rmsnorm", nullptr, values, 1, nullptr), FLASHINFER_TYPE_ERROR);
  const char* bad_name[] = {nullptr, "wieght"};
  EXPECT_EQ(flashinfer_call("rmsnorm", bad_name, values, 2, nullptr), FLASHINFER_TYPE_ERROR);
  EXPECT_STREQ(flashinfer_last_error(), "TypeError: rmsnorm() got an unexpected keyword argument 'wieght'");
  const char* order[] = {"input", nullptr};
  EXPECT_EQ(flashinfer_call("rmsnorm", order, values, 2, nullptr), FLASHINFER_TYPE_ERROR);
  const flashinfer_value null_tensor[] = {flashinfer_tensor(nullptr)};
  EXPECT_EQ(flashinfer_call("rmsnorm", nullptr, null_tensor, 1, nullptr), FLASHINFER_VALUE_ERROR);
  EXPECT_STREQ(flashinfer_last_error(), "ValueError: rmsnorm: argument number 0: a tensor is a null pointer");
  EXPECT_EQ(flashinfer_call(nullptr, nullptr, nullptr, 0, nullptr), FLASHINFER_VALUE_ERROR);
  Floats strange({2, 16}, 0.1f);
  strange.t.dtype = {kDLComplex, 64, 1};
  const flashinfer_value complex_value[] = {flashinfer_tensor(&strange.t)};
  EXPECT_EQ(flashinfer_call("rmsnorm", nullptr, complex_value, 1, nullptr), FLASHINFER_VALUE_ERROR);
}

TEST(CApi, ListsTheRegistry) {
  ASSERT_GT(flashinfer_op_count(), 0);
  for (int32_t i = 0; i < flashinfer_op_count(); ++i)
    EXPECT_NE(flashinfer_op_signature(flashinfer_op_name(i)), nullptr);
  EXPECT_EQ(flashinfer_op_name(-1), nullptr);
  EXPECT_EQ(flashinfer_op_name(flashinfer_op_count()), nullptr);
  EXPECT_EQ(flashinfer_op_signature("nothing"), nullptr);
  EXPECT_STREQ(flashinfer_op_signature("rmsnorm"), "(input, weight, eps=1e-06, out=None, enable_pdl=None)");
}

TEST(CApi, LendsTheCallersThreads) {
  struct Engine {
    int calls = 0;
  } engine;
  flashinfer_set_executor(
      [](void* self, int64_t n, flashinfer_task task, void* arg) {
        ++static_cast<Engine*>(self)->calls;
        for (int64_t i = 0; i < n; ++i) task(arg, i);
      },
      &engine, 4);
  Floats x({4096, 64}, 1e-5f), w({64}, 0.1f);
  const flashinfer_value values[] = {flashinfer_tensor(&x.t), flashinfer_tensor(&w.t)};
  EXPECT_EQ(flashinfer_call("rmsnorm", nullptr, values, 2, nullptr), FLASHINFER_OK) << flashinfer_last_error();
  flashinfer_set_executor(nullptr, nullptr, 0);
  EXPECT_EQ(engine.calls, 1);
  EXPECT_EQ(flashinfer_call("rmsnorm", nullptr, values, 2, nullptr), FLASHINFER_OK);
  EXPECT_EQ(engine.calls, 1);
}

TEST(CApi, StartsAndStopsTheRecorder) {
  const flashinfer::testing::TempDir folder;
  const std::string dir = (folder / "dumps").string();
  Floats x({2, 16}, 0.1f), w({16}, 0.1f);
  const flashinfer_value values[] = {flashinfer_tensor(&x.t), flashinfer_tensor(&w.t)};
  ASSERT_EQ(flashinfer_record_set(("dest=" + dir + ".log").c_str()), FLASHINFER_OK) << flashinfer_last_error();
  ASSERT_EQ(flashinfer_record_start(10, dir.c_str()), FLASHINFER_OK) << flashinfer_last_error();
  ASSERT_EQ(flashinfer_call("rmsnorm", nullptr, values, 2, nullptr), FLASHINFER_OK);
  ASSERT_EQ(flashinfer_record_stop(), FLASHINFER_OK);
  ASSERT_EQ(flashinfer_call("rmsnorm", nullptr, values, 2, nullptr), FLASHINFER_OK);
  int folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) folders += entry.is_directory();
  EXPECT_EQ(folders, 1);
  EXPECT_EQ(flashinfer_record_set("colour=blue"), FLASHINFER_VALUE_ERROR);
  EXPECT_EQ(flashinfer_record_start(0, nullptr), FLASHINFER_VALUE_ERROR);
}

TEST(CApi, ObjectsAndExamplesWork) {
  flashinfer_object* object = nullptr;
  EXPECT_EQ(flashinfer_object_new("NoSuchWrapper", nullptr, nullptr, 0, &object), FLASHINFER_VALUE_ERROR);
  EXPECT_STREQ(flashinfer_last_error(), "ValueError: there is no class 'NoSuchWrapper'");
  const flashinfer::testing::TempDir folder;
  for (const char* example : {"c", "cpp"}) {
    const std::string command =
        "cd " + folder.path().string() + " && " + FI_TEST_BUILD_ROOT + "/examples/" + example + " 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
}

}  // namespace
