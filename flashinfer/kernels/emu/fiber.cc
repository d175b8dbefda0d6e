// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/kernels/emu/fiber.h"

#include <sys/mman.h>

#include "flashinfer/core/check.h"

#if defined(__x86_64__)
// Saves the callee-saved registers of the System V ABI, except mxcsr and the x87 control word, which no code here
// changes.
asm(R"(
.text
.p2align 4
.hidden flashinfer_emu_switch
.globl flashinfer_emu_switch
.type flashinfer_emu_switch, @function
flashinfer_emu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size flashinfer_emu_switch, .-flashinfer_emu_switch
)");
extern "C" void flashinfer_emu_switch(void** save, void* load);
#endif

namespace flashinfer::emu {

#if defined(__x86_64__)
void switch_context(Context& from, Context& to) { flashinfer_emu_switch(&from.sp, to.sp); }
void prepare_context(Context& context, char*, char* top, void (*entry)()) {
  // `ret` must leave rsp 8 below a multiple of 16, as a call would.
  void** at = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t{15}) - 1;
  *at = nullptr;  // return address, never used
  *--at = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) *--at = nullptr;
  context.sp = at;
}
#else
void switch_context(Context& from, Context& to) { swapcontext(&from.at, &to.at); }
void prepare_context(Context& context, char* bottom, char* top, void (*entry)()) {
  getcontext(&context.at);
  context.at.uc_stack.ss_sp = bottom;
  context.at.uc_stack.ss_size = static_cast<size_t>(top - bottom);
  context.at.uc_link = nullptr;
  makecontext(&context.at, entry, 0);
}
#endif

Stacks::~Stacks() {
  if (base_) ::munmap(base_, bytes());
}

void Stacks::reserve(size_t n) {
  if (n <= count_) return;
  if (base_) ::munmap(base_, bytes());
  base_ = nullptr, count_ = 0;
  const size_t bytes = n * (kBytes + kGuard);
  void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  FI_CHECK(p != MAP_FAILED, RuntimeError, "emulator: no memory for the stacks of ", n, " threads (", bytes >> 20,
           " MB)");
  base_ = static_cast<char*>(p);
  count_ = n;
  for (size_t i = 0; i < n; ++i) ::mprotect(base_ + i * (kBytes + kGuard), kGuard, PROT_NONE);
}

}  // namespace flashinfer::emu
