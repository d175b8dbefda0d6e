# SPDX-License-Identifier: Apache-2.0
"""Every signature that exists here against upstream's: names, order, kinds, defaults, re-exports, enums.

`python tests/python/test_signatures.py` lists what does not exist yet."""
import importlib
import sys

import interface
import pytest

import flashinfer

FUNCTIONS, ALIASES, ENUMS = interface.read()

# Differences that are meant, by the end of the qualified name, with the reason. An entry that no longer differs fails too.
_NAMED = "upstream takes these by *deprecated_positional_args and **kwargs and checks the names itself; here they are named"
_MORE = "keyword-only arguments of ours behind upstream's: functions allowed by name, tolerances"
_SINK = "upstream's *args are the sink and the scale of its attention variant; here they have names"
_SPARSE = "upstream writes f16 whatever q is; here o_data_type is q's unless it is given"
_RANGES = "upstream's return_lse is by keyword alone in this one method; here it is run's"
_DECODE = ("BatchDecodeWithPagedKVCacheWrapper", "CUDAGraphBatchDecodeWithPagedKVCacheWrapper")
_GUIDE = "takes the names of FlashInfer's guide for input_args and repeat_iters too"
MEANT = {
    **{f"{wrapper}.{method}": _NAMED for method in ("plan", "begin_forward") for wrapper in _DECODE},
    "bench_gpu_time": _GUIDE,
    "replay_from_dump": _MORE, "replay_sequence": _MORE,
    **{f"BatchAttentionWithAttentionSinkWrapper.{method}": _SINK for method in ("run", "run_return_lse")},
    "BatchPrefillWithCausalBidirectionalRangesWrapper.run_return_lse": _RANGES,
    **{f"BlockSparseAttentionWrapper.{method}": _SPARSE for method in ("plan", "begin_forward")},
}
_MEANT_DIFFERENCES = {_GUIDE: {"adds *", "adds args=None", "adds num_iters=None"},
                      _MORE: {"adds *", "adds allow=()", "adds rtol=None", "adds atol=None"},
                      _RANGES: {"lacks *"},
                      _SINK: {"lacks *args", "adds *", "adds sink", "adds sm_scale"}}


def find(qualified):
    """The object of that name, or None; what only says that it is not available does not count."""
    parts = qualified.split(".")
    found = flashinfer
    for i, part in enumerate(parts[1:], 2):
        path = ".".join(parts[:i])
        if not hasattr(found, part):
            try:
                importlib.import_module(path)
            except ImportError:
                return None
        # A module's name may be a function's, too (`flashinfer.fi_trace`).
        module = sys.modules.get(path)
        found = module if module is not None and i < len(parts) else getattr(found, part, None)
    return None if hasattr(found, "not_available") else found


EXISTING = [name for name in FUNCTIONS if find(name) is not None]


def test_the_list_is_read_whole():
    assert len(FUNCTIONS) > 350 and len(ENUMS) > 10
    assert FUNCTIONS["flashinfer.norm.rmsnorm"] == ["input", "weight", "eps=1e-06", "out=None", "enable_pdl=None"]


def test_most_of_what_the_registry_holds_is_upstreams():
    assert len(EXISTING) >= 48


@pytest.mark.parametrize("name", EXISTING)
def test_signature(name):
    different = interface.differences(FUNCTIONS[name], interface.parameters(find(name)))
    reason = next((why for end, why in MEANT.items() if name.endswith("." + end)), None)
    if reason is None:
        assert different == []
    else:
        assert different, "no longer differs: remove it from MEANT"
        assert set(different) <= _MEANT_DIFFERENCES.get(reason, set(different))


@pytest.mark.parametrize("name", [n for n in ALIASES if find(n) is not None])
def test_reexports_at_top_level(name):
    for alias in ALIASES[name]:  # what one module of upstream's imports from another is no interface
        assert alias.count(".") > 1 or find(alias) is find(name), alias


def test_enums():
    for name, members in ENUMS.items():
        assert find(name) is None or {m.name: m.value for m in find(name)} == members, name


def test_every_meant_difference_exists():
    assert [end for end in MEANT if not any(n.endswith("." + end) for n in EXISTING)] == []


@pytest.mark.parametrize("theirs, ours, expected", [
    (["a", "b=1"], ["a", "b=1"], []), (["a", "b=1"], ["a"], ["lacks b"]), (["a"], ["a", "b=1"], ["adds b=1"]),
    (["a", "b=1"], ["b=1", "a"], ["order: b, a instead of a, b"]), (["a", "b=1.0"], ["a", "b=1"], ["b=1 instead of b=1.0"]),
    (["a", "*", "b=1"], ["a", "b=1"], ["lacks *"]), (["a=..."], ["a=7"], []), (["a"], ["a=None"], ["a=None instead of a"])])
def test_the_comparison_finds(theirs, ours, expected):
    assert interface.differences(theirs, ours) == expected


def test_lists_are_split_outside_brackets():
    assert interface.split("a, b=(1, 2), *, c='x, y', d=<no, value>") == ["a", "b=(1, 2)", "*", "c='x, y'", "d=<no, value>"]


if __name__ == "__main__":
    absent = [name for name in FUNCTIONS if find(name) is None]
    print("\n".join(absent))
    print(f"{len(EXISTING)} exist, {len(absent)} do not yet")
