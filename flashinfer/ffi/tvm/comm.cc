// SPDX-License-Identifier: Apache-2.0
// Groups of ranks for the Python package (python/flashinfer/_comm_backends.py): "flashinfer.comm.connect" and its kin.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "flashinfer/comm/group.h"
#include "flashinfer/comm/share.h"
#include "flashinfer/core/check.h"
#include "flashinfer/ffi/tvm/convert.h"
#include "flashinfer/op/collective.h"
#include "flashinfer/ops/comm/gpu_share.h"
#include "flashinfer/ops/comm/moe_a2a.h"

namespace flashinfer::ffi {
namespace {

class GroupHandle : public tvm::Object {
 public:
  std::shared_ptr<comm::Group> group;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("flashinfer.comm.Group", GroupHandle, tvm::Object);
};
class GroupRef : public tvm::ObjectRef {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(GroupRef, tvm::ObjectRef, GroupHandle);
};

GroupRef handle_of(std::shared_ptr<comm::Group> group) {
  auto handle = tvm::make_object<GroupHandle>();
  handle->group = std::move(group);
  return GroupRef(std::move(handle));
}
comm::Group& group_of(tvm::AnyView v) { return *v.cast<GroupRef>()->group; }

template <class F>
void set(const char* name, F f) {
  tvm::Function::SetGlobal(std::string("flashinfer.comm.") + name,
                           tvm::Function::FromPacked(
                               [f](tvm::PackedArgs args, tvm::Any* result) { translated([&] { *result = f(args); }); }),
                           true);
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::reflection::ObjectDef<GroupHandle>();  // NOLINT(bugprone-unused-raii): its constructor registers the type
  set("connect", [](tvm::PackedArgs a) -> tvm::Any {  // (name, rank, size)
    return handle_of(comm::Group::connect(std::string(a[0].cast<tvm::String>()), a[1].cast<int>(), a[2].cast<int>()));
  });
  set("exchange", [](tvm::PackedArgs a) -> tvm::Any {  // (group, what, bytes) -> every rank's bytes
    const auto what = a[1].cast<tvm::String>();
    const auto bytes = a[2].cast<tvm::Bytes>();
    tvm::Array<tvm::Any> all;
    for (const std::string& s : group_of(a[0]).exchange({what.data(), what.size()}, {bytes.data(), bytes.size()}))
      all.push_back(tvm::Bytes(s));
    return all;
  });
  set("split", [](tvm::PackedArgs a) -> tvm::Any {  // (group, color, key)
    return handle_of(group_of(a[0]).split(a[1].cast<int>(), a[2].cast<int>()));
  });
  set("invite", [](tvm::PackedArgs) -> tvm::Any { return tvm::String(comm::Group::invite()); });
  set("expect", [](tvm::PackedArgs a) -> tvm::Any {  // (name, processes by rank)
    std::vector<int> processes;
    for (const auto& p : a[1].cast<tvm::Array<tvm::Any>>()) processes.push_back(p.cast<int>());
    comm::Group::expect(std::string(a[0].cast<tvm::String>()), processes);
    return nullptr;
  });
  set("share", [](tvm::PackedArgs a) -> tvm::Any {  // (group, bytes, transport) -> [size, bytes] u8
    return to_tvm(
        comm::share(group_of(a[0]).shared_from_this(), a[1].cast<int64_t>(), std::string(a[2].cast<tvm::String>())));
  });
  set("share_on_gpu", [](tvm::PackedArgs a) -> tvm::Any {  // (group, bytes, device, backend) -> [size, bytes] u8
    const std::string device = a[2].cast<tvm::String>();
    const auto parsed = parse_device(device);
    FI_CHECK(parsed, ValueError, "device is '", device, "', but must be a GPU: 'cuda:N'");
    return to_tvm(share_on_gpu(group_of(a[0]).shared_from_this(), *parsed, a[1].cast<int64_t>(),
                               std::string(a[3].cast<tvm::String>())));
  });
  set("moe_a2a_workspace_size", [](tvm::PackedArgs a) -> tvm::Any {
    return moe_a2a_get_workspace_size_per_rank(a[0].cast<int64_t>(), a[1].cast<int64_t>(), a[2].cast<int64_t>(),
                                               a[3].cast<int64_t>(), a[4].cast<int64_t>());
  });
  set("abandon", [](tvm::PackedArgs a) -> tvm::Any {  // (workspace, text): this rank leaves the call of the others
    op::Passed workspace;
    workspace.positional.push_back(from_tvm(a[0]));
    op::detail::abandon(workspace, std::runtime_error(a[1].cast<tvm::String>()));
    return nullptr;
  });
  set("rank", [](tvm::PackedArgs a) -> tvm::Any { return int64_t{group_of(a[0]).rank()}; });
  set("size", [](tvm::PackedArgs a) -> tvm::Any { return int64_t{group_of(a[0]).size()}; });
}

}  // namespace
}  // namespace flashinfer::ffi
