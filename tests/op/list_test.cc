// SPDX-License-Identifier: Apache-2.0
// An argument that is a list of tensors: the table checks each of them.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "flashinfer/op/call.h"

namespace flashinfer {
namespace {

/// out = sum of a list.
struct ListSum {
  std::vector<TensorView> list;
  std::optional<std::vector<TensorView>> more;
  TensorView like;
  std::optional<TensorView> out;
};
constexpr op::Field kListSumFields[] = {
    op::in<&ListSum::list>("list", nullptr, op::same_as("like")),
    op::in<&ListSum::more>("more", nullptr),
    op::in<&ListSum::like>("like", "n d", DType::kF32),
    op::out<&ListSum::out>("out", "n d", op::same_as("like")),
};
op::Prepared list_sum(const ListSum& a) {
  return [&a] {
    for (int64_t i = 0; i < a.out->numel(); ++i) {
      a.out->data_as<float>()[i] = 0;
      for (const TensorView& t : a.list) a.out->data_as<float>()[i] += t.data_as<float>()[i];
    }
  };
}
constexpr op::Candidate kListSumCandidates[] = {op::cpu<list_sum>()};
constinit const op::Op kListSum =
    op::define<ListSum>("test_sum", "tests.op", "sum", kListSumFields, kListSumCandidates, nullptr);
std::string message(const ListSum& a) {
  try {
    op::call(kListSum, a);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}
TEST(Check, ListsOfTensorsAreCheckedAsTensorsAre) {
  std::vector<float> memory(24, 2.0f);
  const TensorView x(memory.data(), {3, 4}), y(memory.data() + 12, {3, 4});
  ListSum a{.list = {x, y}, .like = x};
  const Tensor out = op::call(kListSum, a);
  EXPECT_EQ(out.data_as<float>()[11], 4.0f);
  a.list[1] = TensorView(memory.data(), DType::kF16, {3, 4});
  EXPECT_EQ(message(a), "ValueError: test_sum: list[1].dtype is float16, but like.dtype is float32");
  const int64_t shape[] = {3, 4}, stride[] = {1, 3};
  a.list[1] = TensorView(memory.data(), DType::kF32, shape, stride);
  EXPECT_EQ(message(a).find("ValueError: test_sum: list[1].stride(-1) is 3, but"), 0u) << message(a);
  a.list[1] = TensorView(nullptr, DType::kF32, {3, 4});
  EXPECT_NE(message(a).find("list[1] is float32[3, 4], but its data pointer is null"), std::string::npos) << message(a);
  a.list[1] = y;
  a.out = y;
  EXPECT_NE(message(a).find("out (float32[3, 4]) shares memory with list[1]"), std::string::npos) << message(a);
  a.out.reset();
  a.list[1] = TensorView(memory.data(), DType::kF32, {3, 4}, Device{DeviceType::kEmu, 0});
  EXPECT_NE(message(a).find("list is on emu:0, but this implementation runs on the CPU"), std::string::npos)
      << message(a);
  a.list[1] = y;
  a.more = {x, TensorView(memory.data(), DType::kF32, {3, 4}, Device{DeviceType::kEmu, 0})};
  EXPECT_NE(message(a).find("more is on emu:0, but this implementation runs on the CPU"), std::string::npos)
      << message(a);
}
}  // namespace
}  // namespace flashinfer
