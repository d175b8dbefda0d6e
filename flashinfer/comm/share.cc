// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/comm/share.h"

#include <map>
#include <mutex>

#include "flashinfer/core/fork_mutex.h"
#include "flashinfer/core/random_name.h"

namespace flashinfer::comm {
namespace {
struct Shared {
  std::weak_ptr<Window> window;
  std::string id;
};
constinit ForkMutex g_mutex(ForkLayer::kCore, 100);
std::map<const void*, Shared>& windows() {
  static auto* all = new std::map<const void*, Shared>;  // tensors may outlive static objects
  return *all;
}
}  // namespace

Tensor share(const std::shared_ptr<Group>& group, int64_t bytes, const std::string& transport) {
  const std::shared_ptr<Window> window = group->window(bytes, transport);
  const std::string id = group->exchange("share", group->rank() == 0 ? random_name() : "")[0];
  const void* first = window->of(0);
  const int64_t stride = group->size() > 1 ? window->of(1) - window->of(0) : bytes;
  const int64_t shape[] = {group->size(), bytes}, strides[] = {stride, 1};
  {
    const std::scoped_lock lock(g_mutex);
    windows()[first] = {window, id};
  }
  // The entry goes before the mapping does, whose address another window may get.
  std::shared_ptr<void> owner(window.get(), [held = window, first](void*) mutable {
    {
      const std::scoped_lock lock(g_mutex);
      windows().erase(first);
    }
    held = nullptr;
  });
  return Tensor(TensorView(first, DType::kU8, shape, strides), std::move(owner));
}

std::shared_ptr<Window> window_at(const void* first) {
  const std::scoped_lock lock(g_mutex);
  const auto found = windows().find(first);
  return found == windows().end() ? nullptr : found->second.window.lock();
}

std::string share_id(const void* first) {
  const std::scoped_lock lock(g_mutex);
  const auto found = windows().find(first);
  return found == windows().end() ? "" : found->second.id;
}

}  // namespace flashinfer::comm
