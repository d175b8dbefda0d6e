# SPDX-License-Identifier: Apache-2.0
"""The decorator and what belongs to it, each in a process of its own, since the environment is read at import."""
import json
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest
from conftest import environment


@pytest.fixture
def python(tmp_path):
    """Runs a text with ours; the log is in `log`, dumps in `dumps`. Returns what it printed."""
    def run(code, level=0, **variables):
        variables = {"FLASHINFER_LOGLEVEL": level, "FLASHINFER_LOGDEST": tmp_path / "log", "FLASHINFER_DUMP_DIR": tmp_path / "dumps",
                     **variables}
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=environment("ours", **variables), text=True,
                              capture_output=True, cwd=tmp_path, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_level_0_gives_the_function_itself(python):
    python("""
        from flashinfer.api_logging import flashinfer_api, flashinfer_experimental_api, _TRACE_REGISTRY
        def f(x): return x
        assert flashinfer_api(f) is f and flashinfer_api()(f) is f
        assert flashinfer_experimental_api(f) is not f
    """)


def test_trace_templates(python):
    """What a template gives to the function; upstream's own classes of templates are objects like these."""
    python("""
        from flashinfer import api_logging
        from flashinfer.api_logging import flashinfer_api
        class Template:
            def __init__(self, op_type, name_prefix=None, init=None):
                self.op_type, self.name_prefix, self.init = op_type, name_prefix, init
            def build_fi_trace_fn(self, api):
                return lambda save_dir=None, name=None, **kwargs: {"op_type": self.op_type, "tags": ["fi_api:" + api], **kwargs}
        def f(x): return x
        one = Template("one")
        traced = flashinfer_api(f, trace=one)
        assert traced is not f and traced(3) == 3 and traced.__wrapped__ is f and not hasattr(f, "fi_trace")
        assert traced.fi_trace(x=4) == {"op_type": "one", "tags": ["fi_api:__main__.f"], "x": 4} and not hasattr(traced, "fi_init")
        two = Template("two", "prefix", init=lambda **kwargs: kwargs)
        assert flashinfer_api(trace=two)(f).fi_init(n=3) == {"n": 3}
        def choose(**kwargs): return two if kwargs.get("n") else one
        choose.templates = [one, two]
        many = flashinfer_api(f, trace=choose)
        assert many.fi_trace(n=1)["op_type"] == "two" and many.fi_trace(n=0)["op_type"] == "one" and many.fi_init(n=1) == {"n": 1}
        assert api_logging._TRACE_REGISTRY == [(f, one, "one"), (f, two, "prefix"), (f, one, "one"), (f, two, "prefix")]
        assert api_logging._TRACE_DISPATCHERS == {f: choose}
        try:
            flashinfer_api(f, trace="a template")
            assert False
        except TypeError as e:
            assert "trace must be a trace template" in str(e)
    """)


def test_the_wrapper_is_the_function_to_the_outside(python, tmp_path):
    python("""
        import inspect
        from flashinfer.api_logging import flashinfer_api
        @flashinfer_api
        def f(a, *, b=2):
            "Doc."
            return a
        assert (f.__name__, f.__doc__, str(inspect.signature(f))) == ("f", "Doc.", "(a, *, b=2)")
        try:
            f(1, c=3)
        except TypeError as e:
            assert "unexpected keyword argument 'c'" in str(e)
        else:
            raise SystemExit("no TypeError")
        assert f(a=5) == 5
    """, level=3)
    assert (tmp_path / "log").read_text().count("API Call: f") == 2


@pytest.mark.filterwarnings("default")
def test_experimental(python):
    python("""
        import os, warnings
        from flashinfer import api_logging as al
        @al.flashinfer_experimental_api(feature="speculation")
        def f(x):
            "Doubles."
            return 2 * x
        assert f.is_experimental and f.experimental_feature == "speculation" and "experimental" in f.__doc__ and "Doubles." in f.__doc__
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            assert f(2) == 4 and f(3) == 6
            al.warn_experimental_backend_once("g", "fast")
            al.warn_experimental_backend_once("g", "fast", automatic=True)
        assert [w.category for w in seen] == [al.ExperimentalWarning] * 2 and "speculation" in str(seen[0].message), seen
        assert not al.experimental_auto_backends_allowed()
        try:
            al.require_experimental_auto_backends("g")
        except RuntimeError as e:
            assert "g" in str(e)
        else:
            raise SystemExit("no RuntimeError")
        os.environ["FLASHINFER_ALLOW_EXPERIMENTAL_AUTO_BACKENDS"] = "1"
        al.require_experimental_auto_backends("g")
    """)


def test_imported_again_with_another_environment(python, tmp_path):
    python("""
        import os, sys, torch
        def load(**env):
            os.environ.update(env)
            for name in [n for n in sys.modules if n.partition(".")[0] == "flashinfer"]:
                del sys.modules[name]
            import flashinfer
            from flashinfer.api_logging import flashinfer_api
            return flashinfer, flashinfer_api
        def f(x): return x
        x = torch.ones(2, 4)
        _, api = load(FLASHINFER_LOGLEVEL="0", FLASHINFER_LOGDEST="first")
        assert api(f) is f
        for level, dest in ((1, "second"), (3, "third"), (0, "fourth"), (1, "fifth")):
            flashinfer, api = load(FLASHINFER_LOGLEVEL=str(level), FLASHINFER_LOGDEST=dest)
            assert (api(f) is f) == (level == 0)
            api(f)(x)
            flashinfer.rmsnorm(x, x[0])
    """)
    calls = {name: re.findall(r"API Call: (\w+)", (tmp_path / name).read_text()) for name in ("second", "third", "fifth")}
    assert calls == dict.fromkeys(calls, ["f", "rmsnorm"])
    assert all((tmp_path / name).read_text().count("System Information") == 1 for name in calls)
    assert "shape=(2, 4)" in (tmp_path / "third").read_text() and "shape" not in (tmp_path / "fifth").read_text()
    assert not (tmp_path / "first").exists() and not (tmp_path / "fourth").exists()


def test_our_ops_keep_the_callers_split_and_the_frameworks_facts(python, tmp_path):
    python("""
        import torch, flashinfer
        x = torch.ones(2, 1, 8)[:, :, ::1]
        weight = torch.ones(8, requires_grad=True)
        flashinfer.rmsnorm(torch.ones(3, 1, 8), weight=weight, eps=1e-5)
        ws = torch.zeros(1 << 16, dtype=torch.uint8)
        d = flashinfer.BatchDecodeWithPagedKVCacheWrapper(ws, kv_layout="NHD")
    """, level=10)
    log = (tmp_path / "log").read_text()
    before = log[log.index("API Call: rmsnorm"):]
    assert "arg[0]:\n    Tensor(\n      shape=(3, 1, 8)\n      stride=(8, 8, 1)" in before
    assert "  weight=\n    Tensor(\n      shape=(8,)" in before and "requires_grad=True" in before
    assert "  eps=\n    1e-05" in before and "  out= [DEFAULT]\n    None" in before
    records = [json.loads(line) for line in (tmp_path / "dumps" / "session.jsonl").read_text().splitlines()]
    done = {r["function_name"]: r for r in records if r["execution_status"] == "completed"}
    assert done["rmsnorm"]["tensor_info"]["input_tensor_keys"] == ["arg_0", "kwarg_weight"]
    assert done["rmsnorm"]["tensor_details"]["arg_0"]["stride"] == [8, 8, 1]
    assert done["BatchDecodeWithPagedKVCacheWrapper.__init__"]["self_id"] > 0
    assert done["BatchDecodeWithPagedKVCacheWrapper.__init__"]["input_metadata"]["kwarg_kv_layout"] == "NHD"


def test_errors_of_the_recorder_break_no_call(python, tmp_path):
    python("""
        from flashinfer.api_logging import flashinfer_api
        class Mute:
            @property
            def __class__(self): raise RuntimeError("no class")
        a = []
        a.append(a)  # nested without end
        @flashinfer_api
        def f(x): return x
        assert f(a) is a
        mute = Mute()
        assert f(mute) is mute
        assert f(3) == 3
        class Unspeakable(Exception):
            def __str__(self): raise RuntimeError("no text")
        @flashinfer_api
        def g(): raise Unspeakable
        try:
            g()
        except Unspeakable:
            pass
    """, level=3)
    log = (tmp_path / "log").read_text()
    assert log.count("[LOGGING ERROR in f (pre-execution)]: ") == 2 and log.count("Output value:") == 1


def test_what_a_call_raises_is_recorded(python, tmp_path):
    python("""
        from flashinfer.api_logging import flashinfer_api
        class Mine(Exception): pass
        @flashinfer_api
        def f(x): raise Mine("why \\ud800")
        try:
            f(1)
        except Mine as e:
            assert e.__traceback__.tb_next is not None
        else:
            raise SystemExit("swallowed")
        @flashinfer_api
        def g(): raise SystemExit(0)
        g()
    """, level=10)
    records = [json.loads(line) for line in (tmp_path / "dumps" / "session.jsonl").read_text().splitlines()]
    failed = {r["function_name"]: r["error"]["type"] for r in records if r["execution_status"] == "failed"}
    assert failed == {"f": "Mine", "g": "SystemExit"}


def test_threads_and_nesting(python, tmp_path):
    python("""
        import threading
        from flashinfer.api_logging import flashinfer_api
        @flashinfer_api
        def inner(x): return x
        @flashinfer_api
        def outer(x): return inner(x) + inner(x)
        threads = [threading.Thread(target=lambda: [outer(i) for i in range(5)]) for _ in range(4)]
        [t.start() for t in threads]; [t.join() for t in threads]
    """, level=10)
    records = [json.loads(line) for line in (tmp_path / "dumps" / "session.jsonl").read_text().splitlines()]
    assert len(records) == 4 * 5 * 3 * 2
    assert {(r["function_name"], r["depth"]) for r in records} == {("inner", 1), ("outer", 0)}
    assert len({r["sequence"] for r in records}) == 60


def test_objects_have_numbers_of_their_own(python, tmp_path):
    python("""
        from flashinfer.api_logging import flashinfer_api
        class AWrapper:
            @flashinfer_api
            def __init__(self): pass
            @flashinfer_api
            def run(self): pass
        a = AWrapper()
        a.run()
        for _ in range(5):
            AWrapper()  # at the same address, one after the other
    """, level=10)
    records = [json.loads(line) for line in (tmp_path / "dumps" / "session.jsonl").read_text().splitlines()]
    numbers = [r["self_id"] for r in records if r["execution_status"] == "completed"]
    assert numbers[0] == numbers[1] and len(set(numbers)) == 6


def test_started_and_stopped_while_it_runs(python, tmp_path):
    out = python("""
        import torch, flashinfer
        from flashinfer import api_logging
        x = torch.ones(2, 8)
        flashinfer.rmsnorm(x, x[0])
        api_logging.start(dump_dir="elsewhere")
        flashinfer.rmsnorm(x, x[0])
        api_logging.stop()
        flashinfer.rmsnorm(x, x[0])
        print(api_logging.flush_graph_dumps(), api_logging.clear_graph_dumps())
    """)
    assert out.endswith("0 0\n")
    assert len((tmp_path / "elsewhere" / "session.jsonl").read_text().splitlines()) == 2
    assert not pathlib.Path(tmp_path, "dumps").exists()


def test_a_graph_of_torch_flushes_its_calls_after_a_replay(python):
    """The class of a torch without CUDA has no methods, so one of the test's own stands for it."""
    out = python("""
        import types
        import torch
        class CUDAGraph:
            def capture_begin(self, pool=None): print("begin", pool)
            def replay(self): print("replay")
        torch.cuda.CUDAGraph = CUDAGraph
        torch.cuda.current_stream = lambda: types.SimpleNamespace(device_index=0, cuda_stream=7)
        from flashinfer import api_logging
        real = api_logging._native.function
        fakes = {"record_capture": lambda device, stream: device + stream, "record_flush": lambda wait, graph: print("flush", wait, graph)}
        api_logging._native.function = lambda name: fakes.get(name) or real(name)
        graph = CUDAGraph()
        graph.replay()
        graph.capture_begin(pool=3)
        graph.replay()
    """, level=10)
    assert "flush_graph_dumps() will run after every torch.cuda.CUDAGraph.replay()." in out
    assert out.endswith("replay\nbegin 3\nreplay\nflush True 7\n")
