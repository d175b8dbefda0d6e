// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/table.h"
#include "flashinfer/jit/locks.h"

namespace flashinfer::jit::detail {
namespace {
TableBase* first_table = nullptr;
}

std::mutex& table_mutex() { return g_tables_mutex.get(); }

void enlist(TableBase* table, bool& listed, TableBase*& next) {
  if (listed) return;
  listed = true;
  next = first_table;
  first_table = table;
}

void forget_tables() {
  const std::lock_guard lock(table_mutex());
  for (TableBase* t = first_table; t != nullptr; t = t->next_) t->forget_(t);
}

uint64_t count_memory_hits() {
  const std::lock_guard lock(table_mutex());
  uint64_t hits = 0;
  for (TableBase* t = first_table; t != nullptr; t = t->next_) hits += t->hits_.load(std::memory_order_relaxed);
  return hits;
}

}  // namespace flashinfer::jit::detail
