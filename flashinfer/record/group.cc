// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/record/group.h"

#include "flashinfer/comm/share.h"
#include "flashinfer/op/object.h"
#include "flashinfer/record/encode.h"
#include "flashinfer/record/format.h"

namespace flashinfer::record {
namespace {

Json group_json(Json name, Json rank, Json size) {
  return {{kGroupName, std::move(name)}, {kRank, std::move(rank)}, {kGroupSize, std::move(size)}};
}

/// The plain members of a workspace's state.
Json members_of(const op::Object& workspace) {
  CallValues members;
  add_state(members, *workspace.type, workspace.state.get(), "");
  return members.metadata;
}
/// Of a workspace that is an object; null: it is none, or has no state.
Json of_object(const op::Arg& a) {
  const auto* object = a.value.as<op::ObjectValue>();
  const bool self = !a.field || a.field->role == op::Role::kSelf;
  if (!object || !object->object || !object->object->state || self) return {};
  const Json m = members_of(*object->object);
  Json group = group_json(m.value(kStateGroup, Json()), m.value(kStateRank, Json()), m.value(kStateSize, Json()));
  group[kGroupWorkspace] = {
      {kArgument, a.name}, {kClass, object->object->class_name}, {kStateId, m.value(kStateId, Json())}, {kMembers, m}};
  return group;
}
/// Of a workspace that is memory of comm::share; null: it is none.
Json of_memory(const op::Arg& a) {
  const TensorView* t = a.field && a.field->role == op::Role::kScratch ? a.value.tensor() : nullptr;
  const auto window = t ? comm::window_at(t->data()) : nullptr;
  if (!window) return {};
  Json group = group_json(window->group().name(), window->group().rank(), window->group().size());
  group[kGroupWorkspace] = {
      {kArgument, a.name}, {kStateId, comm::share_id(t->data())}, {kWindowBytes, window->bytes()}};
  return group;
}

}  // namespace

Json group_of(const std::vector<op::Arg>& args) {
  CallValues given;
  for (const op::Arg& a : args) {
    if (Json group = of_object(a); !group.is_null()) return group;
    if (Json group = of_memory(a); !group.is_null()) return group;
    if (a.name == kStateGroup || a.name == kStateRank || a.name == kStateSize) given.add(a.name, a.value, nullptr);
  }
  const Json& m = given.metadata;
  if (!m.contains(kStateGroup)) return {};
  return group_json(m.value(kStateGroup, Json()), m.value(kStateRank, Json()), m.value(kStateSize, Json()));
}

}  // namespace flashinfer::record
