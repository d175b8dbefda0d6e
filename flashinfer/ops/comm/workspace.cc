// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/comm/workspace.h"

#include <algorithm>

#include "flashinfer/comm/agree.h"
#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/core/random_name.h"
#include "flashinfer/op/collective.h"
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
    op::attr<&AllReduceState::group>("group"),
    op::attr<&AllReduceState::id>("id"),
};

/// What is needed to meet the other ranks; the rest is checked together with them.
void validate(const Init& a) {
  FI_CHECK(!a.group.empty(), ValueError, "group is empty, but must be a name");
  FI_CHECK(a.world_size >= 1 && a.world_size <= flashinfer::comm::kMaxRanks, ValueError, "world_size is ", a.world_size,
           ", but must be in [1, ", flashinfer::comm::kMaxRanks, "]");
  FI_CHECK(a.rank >= 0 && a.rank < a.world_size, ValueError, "rank is ", a.rank, ", but must be in [0, ", a.world_size,
           ")");
}
constexpr std::string_view kBackends[] = {"auto", "shm", "tcp", "mpi", "peers", "nccl"};
void check_together(const Init& a) {
  FI_CHECK(a.max_token_num >= 1, ValueError, "max_token_num is ", a.max_token_num, ", but must be at least 1");
  FI_CHECK(a.hidden_dim >= 1, ValueError, "hidden_dim is ", a.hidden_dim, ", but must be at least 1");
  FI_CHECK(op::floats.has(a.dtype), ValueError, "dtype is ", name(a.dtype),
           ", but must be float16, bfloat16 or float32");
  FI_CHECK(a.max_token_num <= (int64_t{1} << 40) / a.hidden_dim, ValueError, "max_token_num * hidden_dim is ",
           a.max_token_num, " * ", a.hidden_dim, ", but must be at most 2^40");
  FI_CHECK(parse_device(a.device), ValueError, "device is '", a.device, "', but must be 'cpu', 'cuda:N' or 'emu'");
  FI_CHECK(std::ranges::find(kBackends, a.backend) != std::end(kBackends), ValueError, "backend is '", a.backend,
           "', but must be auto, shm, tcp, mpi, peers or nccl");
  const bool for_gpus = a.backend == "peers" || a.backend == "nccl",
             on_gpu = parse_device(a.device)->type != DeviceType::kCPU;
  FI_CHECK(a.backend == "auto" || for_gpus == on_gpu, ValueError, "backend is '", a.backend, "', but must be ",
           on_gpu ? "auto, peers or nccl" : "auto, shm, tcp or mpi", " for device '", a.device, "'");
}
std::string sizes_of(const Init& a) {
  return str("max_token_num=", a.max_token_num, ", hidden_dim=", a.hidden_dim, ", dtype=", name(a.dtype),
             a.device == "cpu" ? "" : str(", on a GPU, backend='", a.backend, "'"));
}

/// A slot of a rank with one thread: with the input, the result and the other ranks' slots it stays in L2.
constexpr int64_t kSlotBytes = 256 * 1024, kMostSlotBytes = 8 << 20;

/// Bytes of a slot, from what all ranks say. ValueError, on all: a rank has a problem, or other sizes.
int64_t agree(flashinfer::comm::Group& group, const Init& a) {
  const std::string threads = std::to_string(Context::current().executor.threads);
  flashinfer::comm::on_every_rank(group, "AllReduceFusionWorkspace", [&] { check_together(a); });
  const auto sizes = group.exchange("AllReduceFusionWorkspace", sizes_of(a)),
             all_threads = group.exchange("AllReduceFusionWorkspace", threads);
  int64_t most = 1;
  for (size_t r = 0; r < sizes.size(); ++r) {
    FI_CHECK(sizes[r] == sizes[0], ValueError, "rank ", r, " has ", sizes[r], ", but rank 0 has ", sizes[0]);
    most = std::max<int64_t>(most, std::stoi(all_threads[r]));
  }
  const int64_t input = round_up(a.max_token_num * a.hidden_dim * size_of(a.dtype), 64);
  return std::min(input, std::min(most * kSlotBytes, kMostSlotBytes));
}

void launch_init(const Init& a) {
  op::on_abandoned(all_reduce_state, [](const op::Object& o, const std::string& reason) {
    const auto& s = o.as<AllReduceState>();
    if (!s.memory) return;
    if (s.memory->window) s.memory->window->abandon(reason);
    if (s.memory->gpu) s.memory->gpu->abandon(reason);
  });
  const auto group =
      flashinfer::comm::Group::connect(a.group, static_cast<int>(a.rank), static_cast<int>(a.world_size));
  const auto memory = std::make_shared<AllReduceMemory>();
  memory->slot = agree(*group, a);
  if (const Device device = *parse_device(a.device); device.type != DeviceType::kCPU)
    memory->gpu = connect_gpus(group, device, a.max_token_num * a.hidden_dim * size_of(a.dtype), a.backend);
  else
    memory->window = group->window((AllReduceMemory::kInputs + AllReduceMemory::kSums) * memory->slot,
                                   a.backend == "auto" ? "" : a.backend);
  // Connects recorded calls of the ranks: a name may stand for one group after another.
  const std::string id = group->exchange("AllReduceFusionWorkspace", a.rank == 0 ? random_name() : "")[0];
  a.self->set(
      AllReduceState{a.backend, a.world_size, a.rank, a.max_token_num, a.hidden_dim, a.dtype, memory, a.group, id});
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
    op::attr<&Init::backend>("backend", op::doc("what carries the data: auto, shm, tcp, mpi; on GPUs peers or nccl")),
    op::attr<&Init::device>("device", op::doc("of the calls' tensors: 'cpu', or this rank's GPU")),
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

static bool is_workspace(const op::Object* o) { return o && o->state && std::string_view(o->class_name) == kClass; }
static const AllReduceState& usable_state_of(const op::Object* workspace) {
  FI_CHECK(is_workspace(workspace), TypeError, "workspace is ",
           workspace ? str("a ", workspace->class_name) : "missing", ", but must be an AllReduceFusionWorkspace");
  const auto& s = workspace->as<AllReduceState>();
  FI_CHECK(s.memory, RuntimeError, "workspace has no group: it was destroyed, or is that of a recording");
  return s;
}
const AllReduceState& all_reduce_state_for(const op::Object* workspace, const TensorView& input, const char* name) {
  const AllReduceState& s = usable_state_of(workspace);
  const Device of = s.memory->gpu ? s.memory->gpu->device : kCpu;
  FI_CHECK(input.device() == of, ValueError, name, " is on ", to_string(input.device()),
           ", but the workspace was made for ", to_string(of), " (device)");
  return s;
}
const std::shared_ptr<AllReduceGpu>& all_reduce_gpu_of(const op::Object* workspace) {
  return workspace->as<AllReduceState>().memory->gpu;
}
int64_t number_of_call(const op::Object* workspace) {
  if (!op::observed() || !is_workspace(workspace)) return -1;
  const auto& s = workspace->as<AllReduceState>();
  if (!s.memory) return -1;
  if (s.memory->gpu) return s.memory->gpu->calls;
  return s.world_size == 1 ? s.memory->calls_alone++ : static_cast<int64_t>(s.memory->window->phase());
}
}  // namespace ops::comm

AllReduceFusionWorkspace::AllReduceFusionWorkspace(AllReduceFusionWorkspaceInit a)
    : self_(ops::comm::kClass, ops::comm::kModule, ops::comm::all_reduce_state) {
  a.self = &self_;
  op::call(ops::comm::workspace_init_op, a);
}
void AllReduceFusionWorkspace::destroy() { op::call(ops::comm::workspace_destroy_op, ops::comm::Destroy{&self_}); }

}  // namespace flashinfer
