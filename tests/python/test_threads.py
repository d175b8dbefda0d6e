# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest
import torch

import flashinfer


def test_threads_of_this_thread():
    default = flashinfer.get_num_threads()
    assert default >= 1
    with flashinfer.num_threads(3):
        assert flashinfer.get_num_threads() == 3
        with flashinfer.num_threads(1):
            assert flashinfer.get_num_threads() == 1
        assert flashinfer.get_num_threads() == 3
        seen = []
        other = threading.Thread(target=lambda: seen.append(flashinfer.get_num_threads()))
        other.start(), other.join()
        assert seen == [default]
    assert flashinfer.get_num_threads() == default
    with pytest.raises(ValueError, match="set_num_threads: -1 threads"):
        flashinfer.set_num_threads(-1)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU")
def test_bound_threads_are_all_used():
    """OpenMP may bind its threads, and then the main thread has one CPU (vLLM's workers): calls run on all of OpenMP's threads, not on one."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    program = "import os, torch, flashinfer; flashinfer.rmsnorm(torch.ones(300, 256), torch.ones(256)); print(len(os.sched_getaffinity(0)), flashinfer.get_num_threads(), torch.get_num_threads())"
    for variables, expected in (({}, "1 2 2"), ({"FLASHINFER_NUM_THREADS": "1"}, "1 1 2")):
        bound = {"OMP_NUM_THREADS": "2", "GOMP_CPU_AFFINITY": " ".join(map(str, cpus)), **variables}
        env = {k: v for k, v in os.environ.items() if k != "FLASHINFER_NUM_THREADS"} | bound | {"PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
        assert done.stdout.split() == expected.split(), done.stderr


def test_results_do_not_depend_on_threads():
    x, w = torch.randn(300, 256), torch.randn(256)
    expected = flashinfer.rmsnorm(x, w)
    for n in (1, 2, 5):
        with flashinfer.num_threads(n):
            assert torch.equal(flashinfer.rmsnorm(x, w), expected)


def test_many_python_threads_at_once():
    x, w = torch.randn(64, 128), torch.randn(128)
    expected, wrong = flashinfer.rmsnorm(x, w), []

    def work(n):
        with flashinfer.num_threads(n):
            for _ in range(50):
                if not torch.equal(flashinfer.rmsnorm(x, w), expected):
                    wrong.append(n)

    threads = [threading.Thread(target=work, args=(1 + i % 2,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_the_gil_is_released_while_a_kernel_runs():
    """Python goes on in another thread in the middle of a call. Several tries: on a busy machine no thread may get a turn in one."""
    a, b = torch.randn(1024, 2048).bfloat16(), torch.randn(2048, 2048).bfloat16().t()
    flashinfer.mm_bf16(a[:4], b)

    def ticks_in_the_middle():
        window, ticks = [], []

        def call():
            with flashinfer.num_threads(1):
                begin = time.perf_counter()
                flashinfer.mm_bf16(a, b)
                window[:] = begin, time.perf_counter()

        thread = threading.Thread(target=call)
        thread.start()
        while not window:
            ticks.append(time.perf_counter())
            time.sleep(0.0005)
        thread.join()
        begin, end = window
        return sum(begin + (end - begin) / 4 < t < end - (end - begin) / 4 for t in ticks)

    assert any(ticks_in_the_middle() > 0 for _ in range(10))


def run_alone(program, **environment):
    env = {**os.environ, **environment, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env=env, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("share, more", [("1", 0), ("0", 1)])
def test_torchs_threads_do_the_work(share, more):
    """Beside torch's own, the process has no more threads than it had: a second set would fight for the cores."""
    done = run_alone("""
        import os, torch, flashinfer
        torch.set_num_threads(2)
        x, w = torch.randn(2048, 4096), torch.randn(4096)
        torch.mul(x, 2, out=torch.empty_like(x))
        with flashinfer.num_threads(1):
            flashinfer.rmsnorm(x, w)  # the library is loaded, its kernel compiled
        before = len(os.listdir("/proc/self/task"))
        with flashinfer.num_threads(2):
            flashinfer.rmsnorm(x, w)
        print(len(os.listdir("/proc/self/task")) - before)
        """, FLASHINFER_SHARE_OPENMP=share)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == more


def test_a_forked_child_computes():
    """OpenMP's threads do not survive fork(); the library's own are made anew."""
    done = run_alone("""
        import os, torch, flashinfer
        x, w = torch.randn(2048, 4096), torch.randn(4096)
        expected = flashinfer.rmsnorm(x, w)
        child = os.fork()
        if child == 0:  # numpy compares: torch's own operators would wait for threads that are gone
            os._exit(0 if (flashinfer.rmsnorm(x, w).numpy() == expected.numpy()).all() else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """)
    assert done.returncode == 0 and done.stdout == "0\n", done.stdout + done.stderr
