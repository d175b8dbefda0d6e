# SPDX-License-Identifier: Apache-2.0
"""The autotuner with runners of a program's own: what is measured, what wins, what files hold, and what other processes read."""
import json
import logging
import pathlib
import threading
import time

import pytest
import torch

import flashinfer
from flashinfer.autotuner import (AutoTuner, ConstraintSpec, DynamicTensorSpec, MeasurementPolicy, TunableRunner, TuningConfig, autotune, autotune_v2,
                                  autotune_v2_reload, is_in_profile_measurement, make_bucket_mapper, round_to_nearest_bucket)
from flashinfer.autotuner import _files, autotuner
from flashinfer.tactics_blocklist import TacticsBlocklist


class Sleeper(TunableRunner):
    """Tactic n takes `times[n]` milliseconds; what was called is kept in `calls`."""
    calls = []

    def __init__(self, times=(5, 1, 3)):
        self.times = times

    def get_valid_tactics(self, inputs, profile):
        return list(range(len(self.times)))

    def forward(self, inputs, tactic=-1, do_preparation=False, **kwargs):
        self.calls.append((tuple(inputs[0].shape), tactic, is_in_profile_measurement()))
        if tactic >= 0 and self.times[tactic] is None:
            raise RuntimeError("this tactic never works")
        return inputs[0]


class Real(Sleeper):
    def forward(self, inputs, tactic=-1, do_preparation=False, **kwargs):
        time.sleep(self.times[tactic] * 1e-3)
        return super().forward(inputs, tactic)


measure = AutoTuner._profile_single_kernel


def measured_by_its_word(self, runner, inputs, tactic, tuning_config=None, **kwargs):
    """Calls the runner once, as the tuner does, and takes its own times: a busy machine does not decide."""
    tuning_config = TuningConfig(profiling_repeat=1)
    return measure(self, runner, inputs, tactic, tuning_config, **kwargs) * 0 + runner.times[tactic]


class Other(Sleeper):
    pass


ROWS = TuningConfig(dynamic_tensor_specs=(DynamicTensorSpec((0,), (0,), (8, 16), make_bucket_mapper((8, 16))),))


@pytest.fixture(autouse=True)
def tuner(monkeypatch):
    monkeypatch.setattr(AutoTuner, "_instance", None)
    monkeypatch.setattr(AutoTuner, "_profile_single_kernel", measured_by_its_word)
    Sleeper.calls.clear()
    return AutoTuner.get()


def chosen(tuner, rows, runners=None, config=ROWS, op="op"):
    runner, tactic = tuner.choose_one(op, runners or [Sleeper()], config, [torch.zeros(rows, 4), None])
    return type(runner).__name__, tactic


def test_the_fastest_tactic_wins_in_every_bucket(tuner):
    assert chosen(tuner, 9) == ("Sleeper", -1) and Sleeper.calls == []
    with autotune():
        assert chosen(tuner, 9) == ("Sleeper", 1)
        measured = {(shape, tactic) for shape, tactic, inside in Sleeper.calls if inside}
        assert measured == {((n, 4), t) for n in (8, 16) for t in range(3)}
        count = len(Sleeper.calls)
        assert chosen(tuner, 100) == ("Sleeper", 1) and len(Sleeper.calls) == count
    assert chosen(tuner, 17) == ("Sleeper", 1) and not is_in_profile_measurement()
    assert tuner.stats.tuned_op_total_configs == {"op": 2} and tuner.stats.cache_misses == 1


def test_time_is_measured(tuner, monkeypatch):
    monkeypatch.setattr(AutoTuner, "_profile_single_kernel", measure)
    with autotune():
        assert chosen(tuner, 8, [Real((120, 0))], TuningConfig(profiling_repeat=3)) == ("Real", 1)
    assert measure(tuner, Real((20,)), [torch.zeros(1)], 0, TuningConfig(profiling_repeat=2)) >= 20


def test_the_fastest_runner_wins_wherever_it_stands(tuner):
    with autotune():
        assert chosen(tuner, 8, [Sleeper(), Other((4, 0))]) == ("Other", 1)
    assert chosen(tuner, 8, [Other((4, 0)), Sleeper()]) == ("Other", 1)
    assert chosen(tuner, 8, [Sleeper()]) == ("Sleeper", -1)


def test_tactics_that_fail_are_left_out(tuner):
    with autotune():
        assert chosen(tuner, 8, [Sleeper((None, 2, None))]) == ("Sleeper", 1)
        assert chosen(tuner, 8, [Sleeper((None,))], op="never") == ("Sleeper", -1)
    assert tuner.stats.failed_tactics["op::Sleeper"] == {0, 2} and "never" in tuner.stats.failed_profiling_count


def test_tactics_of_a_blocklist_are_not_measured(tuner, tmp_path, monkeypatch):
    path = str(tmp_path / "folder" / "blocked.json")
    with autotune():
        chosen(tuner, 8, [Sleeper((None, 2))])
    TacticsBlocklist.save(path, {**tuner.stats.failed_tactics, "other::Sleeper": [[1, [2, 3]], (4, 5)]})
    again = TacticsBlocklist()
    assert again.load(path) and again.is_loaded and again.summary() == {"op::Sleeper": 1, "other::Sleeper": 2}
    assert again.filter("other", Sleeper(), [(1, (2, 3)), [4, 5], 7]) == [7] and again.filter("op", Other(), [0]) == [0]
    monkeypatch.setenv("FLASHINFER_TACTICS_BLOCKLIST", path)
    monkeypatch.setattr(AutoTuner, "_instance", None)
    fresh = AutoTuner.get()
    Sleeper.calls.clear()
    with autotune():
        assert chosen(fresh, 8, [Sleeper((None, 2))]) == ("Sleeper", 1)
    assert {tactic for _, tactic, _ in Sleeper.calls if tactic != -1} == {1} and not fresh.stats.failed_tactics
    with autotune():
        fresh._blocklist._tactics["all::Sleeper"] = {0, 1}
        assert chosen(fresh, 8, [Sleeper((None, 2))], op="all") == ("Sleeper", -1)


def test_a_blocklist_of_another_gpu_is_ignored(tmp_path, caplog):
    path = str(tmp_path / "blocked.json")
    TacticsBlocklist.save(path, {"op::Sleeper": [1]}, metadata={"gpu": "another"})
    blocklist = TacticsBlocklist()
    assert not blocklist.load(path) and not blocklist.is_loaded and "another there" in caplog.text
    TacticsBlocklist.save(path, {"op::Sleeper": [1]}, metadata={"gpu": "*"})
    assert blocklist.load(path) and blocklist.filter("op", Sleeper(), [0, 1]) == [0]
    with pytest.raises(FileNotFoundError):
        blocklist.load(path + ".missing")
    pathlib.Path(path).write_text('{"invalid_tactics": [1]}')
    with pytest.raises(ValueError, match="must be an object of lists"):
        blocklist.load(path)


def test_skipped_ops_and_buckets_of_the_block(tuner):
    with autotune(skip_ops="op", tuning_buckets=(32, 4)):
        assert chosen(tuner, 8) == ("Sleeper", -1) and Sleeper.calls == []
        with autotune(skip_ops={"x"}):
            assert chosen(tuner, 8) == ("Sleeper", -1)
        assert chosen(tuner, 8, op="two") == ("Sleeper", 1)
    assert {shape for shape, _, _ in Sleeper.calls} == {(32, 4), (4, 4)}
    assert chosen(tuner, 8, op="two") == ("Sleeper", -1)  # the buckets were those of the block
    assert tuner._override_tuning_buckets is None and tuner._effective_skip_ops == frozenset()
    for bad in ({"tuning_buckets": ()}, {"cuda_graph_profile_replays": 0}):
        with pytest.raises(ValueError):
            autotune(**bad).__enter__()


def test_extents_that_follow_from_others(tuner):
    config = TuningConfig(dynamic_tensor_specs=ROWS.dynamic_tensor_specs, constraint_specs=(ConstraintSpec(1, 0, lambda s: s[0][0] * 2),),
                          tensor_initializers=((0, lambda shape, dtype, device: torch.full(shape, 7.0)),))
    inputs = [torch.zeros(9, 4), torch.zeros(3, 2)]
    profiles = tuner._generate_optimization_profiles(config, inputs)
    assert [p.get_opt_shapes() for p in profiles] == [((8, 4), (16, 2)), ((16, 4), (32, 2))]
    made = tuner._prepare_input_tensors(profiles[0], inputs)
    assert made[0].eq(7).all() and made[1].shape == (16, 2)
    assert AutoTuner._find_nearest_profile(((9, 4), (3, 2)), config) == ((8, 4), (-1, 2))


def test_ranked_tactics(tuner):
    inputs = [torch.zeros(9, 4)]
    assert tuner.rank_tactics("op", [Sleeper()], ROWS, inputs, k=2) == [-1]
    with autotune():
        assert tuner.rank_tactics("op", [Sleeper()], ROWS, inputs, k=2) == [1, 2]
        assert {shape for shape, _, _ in Sleeper.calls} == {(8, 4)}
    assert tuner.rank_tactics("op", [Sleeper()], ROWS, inputs, k=2) == [1]


def test_a_file_keeps_winners_for_other_processes(tuner, tmp_path, monkeypatch):
    path = tmp_path / "folder" / "tactics.json"
    with autotune(cache=str(path)):
        chosen(tuner, 8)
    data = json.loads(path.read_text())
    assert data["('op', 'Sleeper', ((8, 4), (0,)), ())"] == ["Sleeper", 1] and data["_metadata"]["flashinfer_version"] == flashinfer.__version__
    monkeypatch.setattr(AutoTuner, "_instance", None)
    again = AutoTuner.get()
    with autotune(False, cache=str(path)):
        assert chosen(again, 8) == ("Sleeper", 1)
    # A file of another environment does not count, and stays.
    data["_metadata"]["gpu"] = "another"
    path.write_text(json.dumps(data))
    monkeypatch.setattr(AutoTuner, "_instance", None)
    other = AutoTuner.get()
    assert other.load_configs(str(path)) is False
    with autotune(cache=str(path)):
        chosen(other, 8, op="new")
    assert json.loads(path.read_text()) == data


def test_an_environment_that_is_not_known_is_replaced(tuner, tmp_path):
    path = tmp_path / "tactics.json"
    path.write_text(json.dumps({"_metadata": {**_files._collect_metadata(), "gpu": "unknown"}, "old": ["Sleeper", 2]}))
    with autotune(cache=str(path)):
        chosen(tuner, 8)
    data = json.loads(path.read_text())
    assert "old" not in data and data["_metadata"] == _files._collect_metadata()
    path.write_text("{")
    with autotune(cache=str(path)):
        chosen(tuner, 8)
    assert "_metadata" in json.loads(path.read_text())


def test_a_remembered_tactic_that_does_not_fit_is_measured_again(tuner, caplog):
    class Checked(Sleeper):
        def validate_tactic(self, inputs, tactic):
            return tactic != 7

    key = tuner._key("op", Checked(), ((8, 4), (0,)), ROWS, [torch.zeros(8, 4), None])
    tuner._file_configs[key.file_key] = ("Checked", 7)
    with caplog.at_level(logging.WARNING, "flashinfer.autotuner"):
        assert chosen(tuner, 8, [Checked()]) == ("Checked", -1) and chosen(tuner, 8, [Checked()]) == ("Checked", -1)
    assert len(caplog.records) == 1 and "does not take its remembered tactic 7" in caplog.text


def test_nothing_to_tune_is_one_line_of_log(tuner, caplog):
    x, w = torch.ones(2, 8), torch.ones(8)
    with caplog.at_level(logging.INFO, "flashinfer.autotuner"), flashinfer.autotune():
        flashinfer.rmsnorm(x, w)
    assert [r.message for r in caplog.records] == ["nothing to tune: every op that was called has one way to compute, or a known winner"]


def test_the_managed_folder(tuner, tmp_path, monkeypatch):
    with autotune_v2(cache_root=tmp_path):
        assert chosen(tuner, 8) == ("Sleeper", 1)
        with pytest.raises(RuntimeError, match="nested"):
            autotune_v2().__enter__()
    folder = next((tmp_path / "v2").iterdir())
    assert len(folder.name) == 16 and len(list((folder / "entries").glob("*.json"))) == 2 and (folder / "manifest.json").exists()
    monkeypatch.setattr(AutoTuner, "_instance", None)
    again, count = AutoTuner.get(), len(Sleeper.calls)
    with autotune_v2("replay", cache_root=tmp_path):
        assert chosen(again, 8) == ("Sleeper", 1) and chosen(again, 8, op="new") == ("Sleeper", -1) and len(Sleeper.calls) == count
    assert chosen(again, 16) == ("Sleeper", 1)  # the folder stays in use
    for entry in (folder / "entries").glob("*.json"):
        entry.write_text("{")
    autotune_v2_reload()
    assert chosen(again, 16) == ("Sleeper", -1)
    with autotune_v2("replay", cache_root=tmp_path, measurement_policy=MeasurementPolicy(cold_l2=True)):
        assert chosen(again, 8) == ("Sleeper", -1)
    for bad, error in (({"mode": "x"}, ValueError), ({"persistent_cache": 1}, TypeError), ({"measurement_policy": 1}, TypeError)):
        with pytest.raises(error):
            autotune_v2(**bad).__enter__()
    with pytest.raises(ValueError):
        MeasurementPolicy("fast")


def test_times_are_averaged_over_ranks(tuner, monkeypatch):
    assert flashinfer.autotuner.get_autotune_process_group() is None
    seen = []
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda value, group: (seen.append(group), value.mul_(2)))
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda group: 2)
    flashinfer.autotuner.set_autotune_process_group("group")
    try:
        assert autotuner._averaged(3.0) == 3.0 and seen == ["group"]
    finally:
        flashinfer.autotuner.set_autotune_process_group(None)


def test_buckets():
    assert [round_to_nearest_bucket(x, (1, 4, 8)) for x in (0, 1, 7, 9)] == [1, 1, 4, 8]
    assert [round_to_nearest_bucket(x, (1, 4, 8), True) for x in (0, 1, 7, 9)] == [1, 1, 8, 8]
    assert make_bucket_mapper((8, 1))(5) == 1 and make_bucket_mapper((8, 1)) is make_bucket_mapper([1, 8])
    for function in (lambda: round_to_nearest_bucket(1, ()), lambda: make_bucket_mapper(())):
        with pytest.raises(ValueError, match="buckets must be non-empty"):
            function()


def test_there_is_one_tuner_for_all_threads(monkeypatch):
    monkeypatch.setattr(AutoTuner, "_instance", None)
    found = []
    threads = [threading.Thread(target=lambda: found.append(AutoTuner.get())) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(set(map(id, found))) == 1
