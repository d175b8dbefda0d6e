// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/comm/workspace.h"

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/comm/op.h"

namespace flashinfer {
namespace ops::comm {
namespace {
using Init = AllReduceFusionWorkspaceInit;
struct Destroy {
  op::Object* self = nullptr;
};

constexpr op::Field state_fields[] = {
    op::attr<&AllReduceState::backend>("backend"),
    op::attr<&AllReduceState::world_size>("world_size"),
    op::attr<&AllReduceState::rank>("rank"),
    op::attr<&AllReduceState::max_token_num>("max_token_num"),
    op::attr<&AllReduceState::hidden_dim>("hidden_dim"),
    op::attr<&AllReduceState::dtype>("dtype"),
};

void validate(const Init& a) {
  FI_CHECK(!a.group.empty(), ValueError, "group is empty, but must be a name");
  FI_CHECK(a.world_size >= 1 && a.world_size <= flashinfer::comm::kMaxRanks, ValueError, "world_size is ", a.world_size,
           ", but must be in [1, ", flashinfer::comm::kMaxRanks, "]");
  FI_CHECK(a.rank >= 0 && a.rank < a.world_size, ValueError, "rank is ", a.rank, ", but must be in [0, ", a.world_size,
           ")");
  FI_CHECK(a.max_token_num >= 1, ValueError, "max_token_num is ", a.max_token_num, ", but must be at least 1");
  FI_CHECK(a.hidden_dim >= 1, ValueError, "hidden_dim is ", a.hidden_dim, ", but must be at least 1");
  FI_CHECK(op::floats.has(a.dtype), ValueError, "dtype is ", name(a.dtype),
           ", but must be float16, bfloat16 or float32");
  FI_CHECK(a.max_token_num <= (int64_t{1} << 40) / a.hidden_dim, ValueError, "max_token_num * hidden_dim is ",
           a.max_token_num, " * ", a.hidden_dim, ", but must be at most 2^40");
}
void launch_init(const Init& a) {
  const auto group =
      flashinfer::comm::Group::connect(a.group, static_cast<int>(a.rank), static_cast<int>(a.world_size));
  const int64_t item = size_of(a.dtype);
  const auto memory = std::make_shared<AllReduceMemory>();
  memory->input_bytes = round_up(a.max_token_num * a.hidden_dim * item, 64);
  memory->sum_bytes = round_up(ceil_div(a.max_token_num, a.world_size) * a.hidden_dim * item, 64);
  memory->window = group->window(2 * memory->half());  // fails on all ranks when their sizes differ
  a.self->set(AllReduceState{a.backend, a.world_size, a.rank, a.max_token_num, a.hidden_dim, a.dtype, memory});
  a.self->planned = true;
}
void launch_destroy(const Destroy& a) {
  AllReduceState s = a.self->as<AllReduceState>();
  s.memory = nullptr;
  a.self->set(std::move(s));
}

constexpr op::Field init_fields[] = {
    op::self<&Init::self>(),
    op::attr<&Init::group>("group", op::required),
    op::attr<&Init::rank>("rank", op::required),
    op::attr<&Init::world_size>("world_size", op::required),
    op::attr<&Init::max_token_num>("max_token_num", op::required),
    op::attr<&Init::hidden_dim>("hidden_dim", op::required),
    op::attr<&Init::dtype>("dtype", op::required),
    op::attr<&Init::backend>("backend", op::choices("shm")),
};
constexpr op::Field destroy_fields[] = {op::self<&Destroy::self>()};
constexpr op::Candidate init_candidates[] = {op::host<launch_init>()};
constexpr op::Candidate destroy_candidates[] = {op::host<launch_destroy>()};
constexpr const char *kClass = "AllReduceFusionWorkspace", *kModule = "flashinfer.comm";
}  // namespace

constinit const op::StateType all_reduce_state = op::state_type<AllReduceState>(state_fields);
constinit const op::Op workspace_init_op = op::collective(
    op::define<Init, validate>("AllReduceFusionWorkspace.__init__", kModule,
                               "Connects the ranks of a group and shares the memory of their all-reduces.", init_fields,
                               init_candidates, nullptr, {}, &all_reduce_state));
constinit const op::Op workspace_destroy_op =
    op::define<Destroy>("AllReduceFusionWorkspace.destroy", kModule, "Gives the workspace's memory back.",
                        destroy_fields, destroy_candidates, nullptr, {}, &all_reduce_state);
}  // namespace ops::comm

AllReduceFusionWorkspace::AllReduceFusionWorkspace(AllReduceFusionWorkspaceInit a)
    : self_(ops::comm::kClass, ops::comm::kModule, ops::comm::all_reduce_state) {
  a.self = &self_;
  op::call(ops::comm::workspace_init_op, a);
}
void AllReduceFusionWorkspace::destroy() { op::call(ops::comm::workspace_destroy_op, ops::comm::Destroy{&self_}); }

}  // namespace flashinfer
