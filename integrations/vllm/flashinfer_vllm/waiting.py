# SPDX-License-Identifier: Apache-2.0
"""vLLM's processes that wait for each other sleep between looks, and the core that they took computes.

The engine hands a step to the worker through shared memory and then, for a second after the last message, calls sched_yield in a loop until
the result is there. So that this does not slow the kernels down, vLLM keeps a core of each worker free of the kernels' threads on x86,
which is half of a machine with two cores. An engine that sleeps needs no core of its own; what it computes between steps is short, but
holds up the thread on whose core it runs, so that on larger machines, where a core is a small share, vLLM's own choice stays."""

import os
import time
import warnings

SLEEP = 2e-4  # seconds: short beside a step, long beside a look at the flag (some microseconds)
FEW_CORES = 4  # as many as this or fewer: no core is kept free
RESERVED = "VLLM_CPU_NUM_OF_RESERVED_CPU"  # vLLM's variable; what the user sets there stays


def register():
    """Replaces the yielding wait of readers of vLLM's shared-memory queues. To be called before vLLM starts its worker; may be called again."""
    try:
        from vllm.distributed.device_communicators.shm_broadcast import SpinCondition

        stock = SpinCondition.wait
    except (ImportError, AttributeError) as error:
        warnings.warn(f"flashinfer-vllm: this vLLM has no SpinCondition.wait ({error}): its processes wait as they do without the part 'waiting'")
        return
    if len(os.sched_getaffinity(0)) <= FEW_CORES:
        os.environ.setdefault(RESERVED, "0")
    if hasattr(stock, "stock"):
        return

    def wait(self, timeout_ms=None):
        if time.monotonic() <= self.last_read + self.busy_loop_s:
            time.sleep(SLEEP)
        else:  # idle for long: until a notification
            stock(self, timeout_ms)

    wait.stock = stock
    SpinCondition.wait = wait
