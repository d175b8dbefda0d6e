// SPDX-License-Identifier: Apache-2.0
// Planted bugs of kernels that share memory with other GPUs: bug_NAME has the bug, right_NAME does not.
#include "flashinfer/kernels/cuda/peers.h"
#include "peer_params.h"

namespace flashinfer::cu {
using P = PeerParams;

FI_GLOBAL_FN uint32_t linear() { return block_x() * threads_x() + thread_x(); }
FI_GLOBAL_FN float* slot_of(const P& p, uint32_t gpu, uint32_t slot) { return p.data[gpu] + slot * kPeerSlot; }
/// The flag in `at`'s memory that `from` sets.
FI_GLOBAL_FN uint32_t* flag_of(const P& p, uint32_t at, uint32_t from) {
  return p.flags[at] + block_x() * p.ranks + from;
}
FI_GLOBAL_FN void put(const P& p, uint32_t slot = 0) {
  slot_of(p, p.rank, slot)[linear()] = static_cast<float>(p.rank + 1);
}
FI_GLOBAL_FN void sum(const P& p, uint32_t slot = 0) {
  float x = 0.0f;
  for (uint32_t g = 0; g < p.ranks; ++g)
    x += slot_of(p, g, slot)[threads_x() - 1 - thread_x() + block_x() * threads_x()];
  p.out[linear()] = x;
}
/// One thread for each other GPU signals to it and waits for it.
template <class Signal, class Wait>
FI_GLOBAL_FN void meet(const P& p, Signal signal, Wait wait) {
  if (thread_x() >= p.ranks || thread_x() == p.rank) return;
  signal(flag_of(p, thread_x(), p.rank));
  wait(flag_of(p, p.rank, thread_x()));
}
FI_GLOBAL_FN void release(uint32_t* flag, uint32_t epoch = 1) { store_release_system(flag, epoch); }
FI_GLOBAL_FN void acquire(uint32_t* flag, uint32_t epoch = 1) {
  while (load_acquire_system(flag) < epoch) {
  }
}
FI_GLOBAL_FN void barrier(const P& p, uint32_t epoch) {
  sync_threads();
  meet(p, [&](uint32_t* f) { release(f, epoch); }, [&](uint32_t* f) { acquire(f, epoch); });
  sync_threads();
}
template <class Signal, class Wait>
FI_GLOBAL_FN void exchange(const P& p, Signal signal, Wait wait) {
  put(p);
  sync_threads();
  meet(p, signal, wait);
  sync_threads();
  sum(p);
}

template <bool kBug>
FI_GLOBAL_FN void no_fence(const P& p) {
  exchange(
      p,
      [](uint32_t* f) {
        if (!kBug) fence_system();
        store_relaxed_system(f, 1u);
      },
      [](uint32_t* f) { acquire(f); });
}
/// A fence of the GPU orders nothing for another one.
template <bool kBug>
FI_GLOBAL_FN void fence_of_gpu(const P& p) {
  exchange(
      p,
      [](uint32_t* f) {
        kBug ? fence() : fence_system();
        store_relaxed_system(f, 1u);
      },
      [](uint32_t* f) { acquire(f); });
}
template <bool kBug>
FI_GLOBAL_FN void release_of_gpu(const P& p) {
  exchange(p, [](uint32_t* f) { kBug ? store_release(f, 1u) : release(f); }, [](uint32_t* f) { acquire(f); });
}
template <bool kBug>
FI_GLOBAL_FN void acquire_of_gpu(const P& p) {
  exchange(
      p, [](uint32_t* f) { release(f); },
      [](uint32_t* f) {
        while ((kBug ? load_acquire(f) : load_acquire_system(f)) == 0) {
        }
      });
}
template <bool kBug>
FI_GLOBAL_FN void relaxed_wait(const P& p) {
  exchange(
      p, [](uint32_t* f) { release(f); },
      [](uint32_t* f) {
        while (load_relaxed_system(f) == 0) {
        }
        if (!kBug) fence_system();
      });
}
/// The flag is no atomic.
template <bool kBug>
FI_GLOBAL_FN void plain_flag(const P& p) {
  exchange(
      p,
      [](uint32_t* f) {
        fence_system();
        if (kBug)
          *static_cast<volatile uint32_t*>(f) = 1;
        else
          store_relaxed_system(f, 1u);
      },
      [](uint32_t* f) { acquire(f); });
}
/// The signal does not wait for what the other threads of its block write.
template <bool kBug>
FI_GLOBAL_FN void early_signal(const P& p) {
  put(p);
  if (!kBug) sync_threads();
  meet(p, [](uint32_t* f) { release(f); }, [](uint32_t* f) { acquire(f); });
  sync_threads();
  sum(p);
}
template <bool kBug>
FI_GLOBAL_FN void late_data(const P& p) {
  if (!kBug) put(p);
  sync_threads();
  meet(
      p,
      [&](uint32_t* f) {
        release(f);
        if (kBug) put(p);
      },
      [](uint32_t* f) { acquire(f); });
  sync_threads();
  sum(p);
}
/// The other threads read before the one that waits has seen the flag.
template <bool kBug>
FI_GLOBAL_FN void waiter_alone(const P& p) {
  put(p);
  sync_threads();
  meet(p, [](uint32_t* f) { release(f); }, [](uint32_t* f) { acquire(f); });
  if (!kBug) sync_threads();
  sum(p);
}
/// Two rounds. Who resets a flag that it has seen may reset the next signal too; numbers that grow need no reset.
template <bool kBug>
FI_GLOBAL_FN void flag_reset(const P& p) {
  for (uint32_t round = 1; round <= 2; ++round) {
    put(p, round - 1);
    sync_threads();
    meet(
        p, [&](uint32_t* f) { release(f, kBug ? 1 : round); },
        [&](uint32_t* f) {
          acquire(f, kBug ? 1 : round);
          if (kBug) store_relaxed_system(f, 0u);
        });
    sync_threads();
    sum(p, round - 1);
  }
}
/// The second round writes what the others may still read of the first.
template <bool kBug>
FI_GLOBAL_FN void one_slot(const P& p) {
  for (uint32_t round = 0; round < 2; ++round) {
    put(p, kBug ? 0 : round);
    barrier(p, round + 1);
    sum(p, kBug ? 0 : round);
  }
}
/// Launched twice, with one slot: the second launch writes it.
template <bool kBug>
FI_GLOBAL_FN void no_last_barrier(const P& p) {
  const uint32_t epoch = p.calls[block_x()];
  put(p);
  barrier(p, epoch + 1);
  sum(p);
  if (!kBug) barrier(p, epoch + 2);
  sync_threads();
  if (thread_x() == 0) p.calls[block_x()] = epoch + (kBug ? 1 : 2);
}
/// Launched twice, with two slots in turn, but the flags of the first launch still stand.
template <bool kBug>
FI_GLOBAL_FN void old_epoch(const P& p) {
  const uint32_t call = p.calls[block_x()];
  put(p, call % 2);
  barrier(p, kBug ? 1 : call + 1);
  sum(p, call % 2);
  sync_threads();
  if (thread_x() == 0) p.calls[block_x()] = call + 1;
}
/// Launched three times, with two slots in turn: the one of the call before may still be read, that before it not.
template <bool kBug>
FI_GLOBAL_FN void slots_in_turn(const P& p) {
  const uint32_t call = p.calls[block_x()], slot = kBug ? call / 2 % 2 : call % 2;
  put(p, slot);
  barrier(p, call + 1);
  sum(p, slot);
  sync_threads();
  if (thread_x() == 0) p.calls[block_x()] = call + 1;
}
/// GPU 0 does not come.
template <bool kBug>
FI_GLOBAL_FN void no_signal(const P& p) {
  if (kBug && p.rank == 0) return;
  put(p);
  barrier(p, 1);
  sum(p);
}

#define FI_PAIR(name)                                     \
  FI_CUDA_ENTRY_NAMED(bug_##name, PeerParams, name<true>) \
  FI_CUDA_ENTRY_NAMED(right_##name, PeerParams, name<false>)
FI_PAIR(no_fence)
FI_PAIR(fence_of_gpu)
FI_PAIR(release_of_gpu)
FI_PAIR(acquire_of_gpu)
FI_PAIR(relaxed_wait)
FI_PAIR(plain_flag)
FI_PAIR(early_signal)
FI_PAIR(late_data)
FI_PAIR(waiter_alone)
FI_PAIR(flag_reset)
FI_PAIR(one_slot)
FI_PAIR(no_last_barrier)
FI_PAIR(old_epoch)
FI_PAIR(slots_in_turn)
FI_PAIR(no_signal)

}  // namespace flashinfer::cu
