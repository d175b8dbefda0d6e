// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/comm/nccl_group.h"

#include <unistd.h>

#include <chrono>
#include <cstring>
#include <utility>

#include "flashinfer/comm/group_state.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/cuda/device.h"
#include "flashinfer/core/emu_memory.h"

namespace flashinfer::comm {
namespace {
using nccl::library;
using nccl::Result;
using Clock = std::chrono::steady_clock;

/// Waits of the host look so often whether ranks still live; between, they look at NCCL and the stream alone.
constexpr auto kLookEvery = std::chrono::milliseconds(20);

/// Makes the device current, if it is a GPU.
class OnDevice {
 public:
  explicit OnDevice(Device d) {
    if (d.type == DeviceType::kCUDA) current_.emplace(d.index);
  }

 private:
  std::optional<cuda::Current> current_;
};

/// Why this process cannot take part, or empty.
std::string problem_of(Device device) {
  if (!library().why_not.empty()) return library().why_not;
  return device.type == DeviceType::kEmu ? "" : cuda::why_no_device(device.index);
}
std::string version_text(int version) { return str(version / 10000, ".", version / 100 % 100, ".", version % 100); }
}  // namespace

NcclGroup::NcclGroup(std::shared_ptr<Group> group, Device device)
    : group_(std::move(group)), device_(device), process_(getpid()), watch_(group_) {}

std::shared_ptr<NcclGroup> NcclGroup::connect(std::shared_ptr<Group> group, Device device) {
  const std::string problem = problem_of(device);
  // All ranks learn of a problem, so that none waits in NCCL for the others.
  const auto problems = group->exchange("NcclGroup", problem),
             versions = group->exchange("NcclGroup", version_text(library().version));
  for (size_t r = 0; r < problems.size(); ++r) {
    FI_CHECK(problems[r].empty(), RuntimeError, "group '", group->name(), "': rank ", r, ": ", problems[r]);
    FI_CHECK(versions[r] == versions[0], RuntimeError, "group '", group->name(), "': rank ", r, " has NCCL ",
             versions[r], ", but rank 0 has ", versions[0]);
  }
  std::shared_ptr<NcclGroup> made(new NcclGroup(std::move(group), device));
  made->init();
  made->watch_.start([group = made.get()] { group->look(); });
  return made;
}

void NcclGroup::init() {
  const OnDevice scope(device_);
  nccl::UniqueId id{};
  Result result = nccl::kSuccess;
  if (rank() == 0) result = library().ncclGetUniqueId(&id);
  const std::string mine = result == nccl::kSuccess ? std::string(id.internal, sizeof id.internal) : "";
  const std::string bytes = group_->exchange("NcclGroup", rank() == 0 ? mine : "")[0];
  if (bytes.size() != sizeof id.internal) fail("ncclGetUniqueId", "rank 0: " + text_of(result));
  std::memcpy(id.internal, bytes.data(), bytes.size());
  nccl::Config config;
  settle("ncclCommInitRank", library().ncclCommInitRankConfig(&comm_, size(), id, rank(), &config));
}

/// Waits for what was enqueued, when all is well; the other ranks do so too.
NcclGroup::~NcclGroup() {
  watch_.stop();
  if (process_ != getpid()) return;  // a forked child has no communicator
  if (!comm_) return;
  try {
    const OnDevice scope(device_);
    for (const cuda::Handle w : windows_)
      settle("ncclCommWindowDeregister", library().ncclCommWindowDeregister(comm_, w));
    settle("ncclCommFinalize", library().ncclCommFinalize(comm_));
    library().ncclCommDestroy(comm_);
    watch_.left();
  } catch (const Error&) {  // fail() has aborted the communicator
  }
}

std::string NcclGroup::why_gone() const {
  const auto gone = watch_.gone();
  return gone ? gone->why : "";
}
std::string NcclGroup::text_of(Result result) const {
  const char* detail = comm_ ? library().ncclGetLastError(comm_) : nullptr;
  return str(library().ncclGetErrorString(result), " (ncclResult_t ", static_cast<int>(result), ")",
             detail && *detail ? str(": ", detail) : "");
}

void NcclGroup::abort(const std::string& reason) {
  failed_ = reason;
  const OnDevice scope(device_);
  if (comm_) library().ncclCommAbort(std::exchange(comm_, nullptr));
}
void NcclGroup::fail(const char* what, const std::string& reason) {
  const std::string failure = str(what, ": ", reason);
  watch_.failed("failed: " + failure);
  abort(failure);
  throw GroupError(str("group '", group_->name(), "', rank ", rank(), ": ", failed_));
}
void NcclGroup::abandon(const std::string& reason) noexcept {
  try {
    const std::scoped_lock lock(mutex_);
    if (!comm_) return;
    watch_.failed("raised " + reason);
    abort("this rank raised " + reason);
  } catch (const std::exception&) {
  }
}

/// Ends what waits on the GPU for a rank that is gone.
void NcclGroup::look() {
  const std::unique_lock lock(mutex_, std::try_to_lock);  // a call that waits looks itself
  if (!lock || !comm_) return;
  try {
    if (const auto lost = watch_.lost()) return abort(lost->why);
    Result state = nccl::kSuccess;
    if (library().ncclCommGetAsyncError(comm_, &state) == nccl::kSuccess && state != nccl::kSuccess &&
        state != nccl::kInProgress)
      abort(text_of(state));
  } catch (const std::exception&) {  // the next call finds it
  }
}

void NcclGroup::settle(const char* what, Result result) {
  const double patience = timeout_seconds();
  const auto begin = Clock::now();
  auto next_look = begin + kLookEvery;
  while (result == nccl::kInProgress) {
    std::this_thread::yield();
    if (const Result asked = library().ncclCommGetAsyncError(comm_, &result); asked != nccl::kSuccess) result = asked;
    if (result != nccl::kInProgress || Clock::now() < next_look) continue;
    next_look = Clock::now() + kLookEvery;
    if (const std::string gone = why_gone(); !gone.empty()) fail(what, gone);
    if (std::chrono::duration<double>(Clock::now() - begin).count() > patience)
      fail(what, str("another rank did not arrive within ", patience, " s (FLASHINFER_COMM_TIMEOUT_S)"));
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (result == nccl::kSuccess) return;
  const std::string gone = why_gone(), text = text_of(result);
  fail(what, gone.empty() ? text : str(gone, "; ", text));
}

void NcclGroup::settle_into(const char* what, Result result, void* out, size_t bytes) {
  settle(what, result);
  if (device_.type == DeviceType::kEmu) emu_memory::wrote(out, bytes);
}

std::unique_lock<std::mutex> NcclGroup::begin(const char* what) {
  std::unique_lock lock(mutex_);
  if (!failed_.empty())
    throw GroupError(str("group '", group_->name(), "', rank ", rank(), ": ", what, ": failed before: ", failed_));
  ++calls_;
  return lock;
}

void NcclGroup::all_gather(const void* in, void* out, size_t bytes, Stream stream) {
  const auto lock = begin("all_gather");
  const OnDevice scope(device_);
  settle_into("all_gather", library().ncclAllGather(in, out, bytes, nccl::kInt8, comm_, stream), out,
              static_cast<size_t>(size()) * bytes);
}

void NcclGroup::all_to_all(const void* in, void* out, size_t bytes, Stream stream) {
  std::vector<Part> sends, receives;
  for (int r = 0; r < size(); ++r) {
    const size_t at = static_cast<size_t>(r) * bytes;
    sends.push_back({r, static_cast<std::byte*>(const_cast<void*>(in)) + at, bytes});
    receives.push_back({r, static_cast<std::byte*>(out) + at, bytes});
  }
  exchange(sends, receives, stream);
}

void NcclGroup::exchange(std::span<const Part> sends, std::span<const Part> receives, Stream stream) {
  for (const auto parts : {sends, receives})
    for (const Part& p : parts)
      FI_CHECK(p.rank >= 0 && p.rank < size(), ValueError, "a part is for rank ", p.rank, ", but there are ", size());
  const auto lock = begin("exchange");
  const OnDevice scope(device_);
  const nccl::Library& l = library();
  settle("ncclGroupStart", l.ncclGroupStart());
  Result first = nccl::kSuccess;
  const auto note = [&](Result r) {
    if (first == nccl::kSuccess && r != nccl::kInProgress) first = r;
  };
  for (const Part& p : sends)
    if (p.bytes) note(l.ncclSend(p.at, p.bytes, nccl::kInt8, p.rank, comm_, stream));
  for (const Part& p : receives)
    if (p.bytes) note(l.ncclRecv(p.at, p.bytes, nccl::kInt8, p.rank, comm_, stream));
  const Result ended = l.ncclGroupEnd();  // also after an error: a group must not stay open
  settle("exchange", first == nccl::kSuccess ? ended : first);
  for (const Part& p : receives)
    if (device_.type == DeviceType::kEmu) emu_memory::wrote(p.at, p.bytes);
}

void NcclGroup::all_reduce(const void* in, void* out, size_t count, DType dtype, Stream stream) {
  const nccl::Type type = nccl::type_of(dtype);
  const auto lock = begin("all_reduce");
  const OnDevice scope(device_);
  settle_into("all_reduce", library().ncclAllReduce(in, out, count, type, nccl::kSum, comm_, stream), out,
              count * static_cast<size_t>(size_of(dtype)));
}

void NcclGroup::reduce_scatter(const void* in, void* out, size_t count, DType dtype, Stream stream) {
  const nccl::Type type = nccl::type_of(dtype);
  const auto lock = begin("reduce_scatter");
  const OnDevice scope(device_);
  settle_into("reduce_scatter", library().ncclReduceScatter(in, out, count, type, nccl::kSum, comm_, stream), out,
              count * static_cast<size_t>(size_of(dtype)));
}

bool NcclGroup::register_memory(void* memory, size_t bytes) {
  if (!library().ncclCommWindowRegister || !library().ncclCommWindowDeregister) return false;
  const auto lock = begin("register_memory");
  const OnDevice scope(device_);
  cuda::Handle window = nullptr;
  settle("ncclCommWindowRegister",
         library().ncclCommWindowRegister(comm_, memory, bytes, &window, nccl::kWindowCollSymmetric));
  windows_.push_back(window);
  return true;
}

void NcclGroup::synchronize(Stream stream) {
  const auto lock = begin("synchronize");
  --calls_;
  if (device_.type == DeviceType::kEmu) return;
  const OnDevice scope(device_);
  cuda::Event event(device_.index);
  event.record(stream);
  const double patience = timeout_seconds();
  const auto began = Clock::now();
  auto next_look = began + kLookEvery;
  while (!event.done()) {
    Result result = nccl::kSuccess;
    if (library().ncclCommGetAsyncError(comm_, &result) != nccl::kSuccess || result != nccl::kSuccess)
      settle("synchronize", result == nccl::kSuccess ? nccl::kInternalError : result);
    if (Clock::now() < next_look) continue;
    next_look = Clock::now() + kLookEvery;
    if (const std::string gone = why_gone(); !gone.empty()) fail("synchronize", gone);
    if (std::chrono::duration<double>(Clock::now() - began).count() > patience)
      fail("synchronize", str("the stream's calls, ", calls_, " collective ones, did not end within ", patience,
                              " s (FLASHINFER_COMM_TIMEOUT_S)"));
    std::this_thread::yield();
  }
}

}  // namespace flashinfer::comm
