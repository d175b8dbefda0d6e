# SPDX-License-Identifier: Apache-2.0
"""Measures the tactics of runners and keeps the fastest, by op, runner and bucket of shapes.

    with autotune(True, cache="tactics.json"):   # measures what is not known yet, and keeps it in the file
        layer(x)
    with autotune(False, cache="tactics.json"):  # only looks up
        layer(x)

The library's own ops have one way of computing each call on a CPU, so that there is nothing to measure in them; runners of a program's
own (`TunableRunner`) are tuned on every device.
"""
import contextlib
import json
import logging
import os
import sys
import threading
import time

from .._modules import names_of
from ._config import AutoTunerStatistics, ProfilingCacheKey, round_to_nearest_bucket
from ._files import (_CACHE_GENERATION_KEY, _METADATA_KEY, _NAMESPACED_RECORDS_KEY, _classify_metadata_mismatches, _collect_metadata,
                     _json_to_tactic, _tactic_to_json, _tactic_to_json_hashable, write_json)
from ._profiles import Context, Profiles

__getattr__ = names_of(__name__)  # of the package's other files

logger = logging.getLogger("flashinfer.autotuner")
_RESERVED = (_METADATA_KEY, _NAMESPACED_RECORDS_KEY, _CACHE_GENERATION_KEY)
_measurement = threading.local()
_group = None


def is_in_profile_measurement():
    """Whether this thread's call of a runner is one that is measured."""
    return getattr(_measurement, "depth", 0) > 0


def set_autotune_process_group(group):
    """The torch.distributed group over whose ranks times are averaged, so that all choose alike; None: none."""
    global _group
    _group = group


def get_autotune_process_group():
    return _group


def _averaged(seconds):
    """Over the ranks of the group; infinite if any rank failed."""
    if _group is None:
        return seconds
    import torch

    value = torch.tensor([seconds], dtype=torch.float64)
    torch.distributed.all_reduce(value, group=_group)
    return value.item() / torch.distributed.get_world_size(_group)


def _is_capturing():
    """Whether the current stream of a GPU is being captured; False without a GPU."""
    torch = sys.modules.get("torch")
    try:
        return torch is not None and torch.cuda.is_current_stream_capturing()
    except (AssertionError, RuntimeError):
        return False


def _blocklist_of_environment():
    """The tactics of the file FLASHINFER_TACTICS_BLOCKLIST, if it is set and can be read."""
    from ..tactics_blocklist import TacticsBlocklist

    blocklist, path = TacticsBlocklist(), os.environ.get("FLASHINFER_TACTICS_BLOCKLIST")
    if path:
        try:
            blocklist.load(path)
        except (OSError, ValueError) as error:
            logger.warning("FLASHINFER_TACTICS_BLOCKLIST=%s cannot be read, and no tactic is left out: %s", path, error)
    return blocklist


class AutoTuner(Profiles):
    """The one tuner of a process: `AutoTuner.get()`. `warmup` calls before `repeat` measured ones; what counts is their median."""

    _class_lock = threading.Lock()

    def __init__(self, warmup=3, repeat=10, stream_delay_micro_secs=5000):
        self.warmup, self.repeat, self.stream_delay_micro_secs = warmup, repeat, stream_delay_micro_secs
        self.is_tuning_mode = False
        self._active_tuning_contexts = 0
        self._lock = threading.RLock()
        self._context = Context()
        self._managed = None
        self._warned_cache_mismatch, self._warned_tactics = set(), set()
        self.profiling_cache, self._ranked, self._file_configs = {}, {}, {}
        self._records = {}
        self.stats = AutoTunerStatistics()
        self._blocklist = _blocklist_of_environment()

    @classmethod
    def get(cls):
        with cls._class_lock:
            if cls._instance is None:
                cls._instance = cls()
            return cls._instance

    def clear_cache(self):
        """Forgets all winners, those from files too."""
        with self._lock:
            self.profiling_cache.clear()
            self._ranked.clear()
            self._file_configs.clear()

    def reset_statistics(self):
        self.stats = AutoTunerStatistics()

    # ---- looking up ----
    @classmethod
    def _get_cache_key(cls, custom_op, runner, input_shapes, tuning_config, extras=()):
        return ProfilingCacheKey(custom_op, type(runner).__name__, hash(runner), cls._find_nearest_profile(input_shapes, tuning_config),
                                 tuple(extras))

    def _key(self, custom_op, runner, shapes, tuning_config, inputs):
        return self._get_cache_key(custom_op, runner, shapes, tuning_config, () if inputs is None else runner.get_cache_key_extras(inputs))

    def search_cache(self, custom_op, runners, input_shapes, tuning_config, inputs=None):
        """(found, index of the runner, tactic, None): what was measured in this process first, then the managed folder and files."""
        keys = [self._key(custom_op, runner, input_shapes, tuning_config, inputs) for runner in runners]
        stores = [self._file_configs] if self._managed is None else [self._managed.entries, self._file_configs]
        with self._lock:
            for i, key in enumerate(keys):
                if key in self.profiling_cache and self._still_valid(runners[i], inputs, self.profiling_cache[key][0], custom_op):
                    return True, i, self.profiling_cache[key][0], None
            for store in stores:
                for i, key in enumerate(keys):
                    name, tactic = store.get(key.file_key, (None, None))
                    if name == type(runners[i]).__name__ and self._still_valid(runners[i], inputs, tactic, custom_op):
                        return True, i, tactic, None
        return False, 0, -1, None

    def _still_valid(self, runner, inputs, tactic, custom_op):
        """Whether the runner takes a remembered tactic, if it has `validate_tactic`; a warning the first time that it does not."""
        check = getattr(runner, "validate_tactic", None)
        if check is None or inputs is None or check(inputs, tactic):
            return True
        if (custom_op, type(runner).__name__) not in self._warned_tactics:
            self._warned_tactics.add((custom_op, type(runner).__name__))
            logger.warning("%s: %s does not take its remembered tactic %s any more; it is measured again", custom_op, type(runner).__name__, tactic)
        return False

    # ---- measuring ----
    def _profile_single_kernel(self, runner, inputs, tactic, tuning_config=None, **kwargs):
        """The median of the milliseconds that a call takes."""
        from ..testing.utils import bench_time

        _measurement.depth = getattr(_measurement, "depth", 0) + 1
        try:
            repeat = getattr(tuning_config, "profiling_repeat", None) or self.repeat
            cold = self._innermost("cold_l2", getattr(tuning_config, "use_cold_l2_cache", False))
            times = bench_time(lambda: runner(inputs, tactic=tactic, **kwargs), dry_run_iters=self.warmup, repeat_iters=repeat,
                               cold_cache=cold)
        finally:
            _measurement.depth -= 1
        return sorted(times)[len(times) // 2]

    def _measure(self, custom_op, runners, profile, tuning_config, inputs, kwargs):
        """[(time, index of the runner, tactic), ...] of all tactics that ran, the fastest first."""
        prepared = self._prepare_input_tensors(profile, inputs)
        if tuning_config.inputs_pre_hook is not None:
            prepared = tuning_config.inputs_pre_hook(prepared)
        from ..tactics_blocklist import key_of

        found = []
        for i, runner in enumerate(runners):
            tactics = self._blocklist.filter(custom_op, runner, runner.get_valid_tactics(prepared, profile))
            if tactics and not runner.precompile_tactics(prepared, tactics, profile, **kwargs):
                runner(prepared, tactic=-1, do_preparation=True, **kwargs)
            for tactic in tactics:
                try:
                    took = self._profile_single_kernel(runner, prepared, tactic, tuning_config, **kwargs)
                except Exception as error:  # a tactic may not fit these shapes: the others count
                    logger.debug("%s: tactic %s of %s failed: %s", custom_op, tactic, type(runner).__name__, error)
                    self.stats.failed_tactics.setdefault(key_of(custom_op, runner), set()).add(_tactic_to_json_hashable(tactic))
                    took = float("inf")
                took = _averaged(took)
                if took != float("inf"):
                    found.append((took, i, tactic))
        return sorted(found, key=lambda f: f[0])

    def _tune(self, custom_op, runners, tuning_config, inputs, kwargs, profiles=None, again=False):
        """Measures what has no winner yet, for all buckets."""
        for profile in profiles or self._generate_optimization_profiles(tuning_config, inputs):
            shapes = profile.get_opt_shapes()
            if not again and self.search_cache(custom_op, runners, shapes, tuning_config, inputs)[0]:
                continue
            if _is_capturing():
                raise RuntimeError(f"{custom_op}: tactics cannot be measured within an active outer CUDA Graph capture; call the op once before it")
            self._context.blocks[-1]["measured"] += 1
            self.stats.tuned_op_total_configs[custom_op] = self.stats.tuned_op_total_configs.get(custom_op, 0) + 1
            found = self._measure(custom_op, runners, profile, tuning_config, inputs, kwargs)
            if not found:
                self.stats.failed_profiling_count.setdefault(custom_op, set()).add(shapes)
                logger.warning("%s: no tactic ran for shapes %s; the default is used", custom_op, shapes)
                continue
            _, i, tactic = found[0]
            key = self._key(custom_op, runners[i], shapes, tuning_config, inputs)
            with self._lock:
                self.profiling_cache[key] = (tactic, profile)
                self._ranked[key] = [t for _, j, t in found if j == i]
                if self._managed is not None:
                    self._managed.put(key, type(runners[i]).__name__, tactic)
            self.stats.tuned_op_successful_configs[custom_op] = self.stats.tuned_op_successful_configs.get(custom_op, 0) + 1

    def _is_tuned_here(self, custom_op):
        return self.is_tuning_mode and self._context.blocks and custom_op not in self._effective_skip_ops

    def choose_one(self, custom_op, runners, tuning_config, inputs, **kwargs):
        """(runner, tactic) for a call: the fastest of its bucket, where that is known or may be measured; else (runners[0], -1).
        `kwargs` go to the runners."""
        if custom_op in self._effective_skip_ops:
            return runners[0], -1
        if self._is_tuned_here(custom_op):
            self._tune(custom_op, runners, tuning_config, inputs, kwargs)
        found, i, tactic, _ = self.search_cache(custom_op, runners, self._shapes(inputs), tuning_config, inputs)
        if not found:
            self.stats.cache_misses += 1
        return (runners[i], tactic) if found else (runners[0], -1)

    def rank_tactics(self, custom_op, runners, tuning_config, inputs, k=1, **kwargs):
        """The best `k` tactics of the winning runner for a call, the fastest first; outside of tuning the one that is known, or [-1]."""
        shapes = self._find_nearest_profile(self._shapes(inputs), tuning_config)
        found, i, tactic, _ = self.search_cache(custom_op, runners, self._shapes(inputs), tuning_config, inputs)
        if self._is_tuned_here(custom_op):
            keys = [self._key(custom_op, runner, self._shapes(inputs), tuning_config, inputs) for runner in runners]
            if not any(key in self._ranked for key in keys):
                profiles = [p for p in self._generate_optimization_profiles(tuning_config, inputs)
                            if self._find_nearest_profile(p.get_opt_shapes(), tuning_config) == shapes]
                self._tune(custom_op, runners, tuning_config, inputs, kwargs, profiles, again=True)
            for key in keys:
                if key in self._ranked:
                    return self._ranked[key][:k]
        return [tactic if found else -1]

    # ---- files ----
    def load_configs(self, path):
        """Reads winners from a file; False, with a warning, when they were measured in another environment.

        Raises:
            FileNotFoundError, json.JSONDecodeError
        """
        with open(path) as f:
            data = json.load(f)
        if _METADATA_KEY in data:
            hard, soft = _classify_metadata_mismatches(data[_METADATA_KEY], _collect_metadata())
            if hard or soft:
                kind = "hard" if hard else "soft"
                level = logging.DEBUG if kind in self._warned_cache_mismatch else logging.WARNING
                self._warned_cache_mismatch.add(kind)
                logger.log(level, "%s was measured in a different environment and is ignored: %s", path,
                           ", ".join(f"{k}: {old} there, {new} here" for k, (old, new) in {**hard, **soft}.items()))
                return False
        with self._lock:
            self._file_configs.update({k: (v[0], _json_to_tactic(v[1])) for k, v in data.items() if k not in _RESERVED})
            self._records.update(data.get(_NAMESPACED_RECORDS_KEY, {}))
        return True

    def save_configs(self, path):
        """Writes all winners, with those that the file has already. A file of another environment is left as it is; one whose
        environment is not known is replaced."""
        metadata, data = _collect_metadata(), {}
        if os.path.exists(path):
            with contextlib.suppress(ValueError, OSError):
                with open(path) as f:
                    old = json.load(f)
                hard, soft = _classify_metadata_mismatches(old[_METADATA_KEY], metadata) if _METADATA_KEY in old else ({}, {})
                if hard:
                    logger.warning("%s was measured in a different environment and is not overwritten", path)
                    return
                data = {} if soft else {k: v for k, v in old.items() if k not in _RESERVED}
        with self._lock:
            data.update({k: [name, _tactic_to_json(tactic)] for k, (name, tactic) in self._file_configs.items()})
            data.update({k.file_key: [k.runner_class_name, _tactic_to_json(tactic)] for k, (tactic, _) in self.profiling_cache.items()})
            records = dict(self._records)
        write_json(path, {_METADATA_KEY: metadata, **data, **({_NAMESPACED_RECORDS_KEY: records} if records else {})})
        logger.info("saved %d configurations to %s", len(data), path)

    def get_namespaced_records(self, namespace):
        """What a program keeps beside winners in the same file."""
        return dict(self._records.get(namespace, {}))

    def publish_namespaced_records(self, namespace, records):
        self._records.setdefault(namespace, {}).update(records)


@contextlib.contextmanager
def _block(tuner, tune_mode, **says):
    """One `autotune` block of this thread."""
    block = {"measured": 0, **says}
    tuner._context.blocks.append(block)
    with tuner._lock:
        tuner._active_tuning_contexts += bool(tune_mode)
        before, tuner.is_tuning_mode = tuner.is_tuning_mode, tune_mode
    started = time.monotonic()
    try:
        yield block
    finally:
        tuner._context.blocks.remove(block)
        with tuner._lock:
            tuner._active_tuning_contexts -= bool(tune_mode)
            tuner.is_tuning_mode = before
        if tune_mode and block["measured"]:
            logger.info("measured %d configurations in %.1f s", block["measured"], time.monotonic() - started)
        elif tune_mode:
            logger.info("nothing to tune: every op that was called has one way to compute, or a known winner")


def checked_overrides(tuning_buckets, skip_ops):
    """Buckets sorted, names as a set.

    Raises:
        ValueError: no buckets
    """
    if tuning_buckets is not None:
        if not len(tuning_buckets):
            raise ValueError("tuning_buckets must contain at least one value when provided; pass None (or omit) to inherit the current buckets")
        tuning_buckets = tuple(sorted(set(tuning_buckets)))
    return tuning_buckets, frozenset([skip_ops] if isinstance(skip_ops, str) else skip_ops or ())


@contextlib.contextmanager
def autotune(tune_mode=True, cache=None, tuning_buckets=None, round_up=None, skip_ops=None, cuda_graph_profile_replays=None):
    """Within the block, calls that choose among tactics take the fastest that is known; with `tune_mode` those that are not known are
    measured, for all buckets.

    Args:
        cache: a JSON file that is read at the start, and written at the end when tuning
        tuning_buckets: buckets in place of the ops' own, for all extents that vary
        round_up: extents between buckets belong to the larger one
        skip_ops: names of ops that take their default
        cuda_graph_profile_replays: for GPUs; nothing here

    Raises:
        ValueError: no buckets, fewer than one replay
    """
    tuning_buckets, skip_ops = checked_overrides(tuning_buckets, skip_ops)
    if cuda_graph_profile_replays is not None and cuda_graph_profile_replays < 1:
        raise ValueError("cuda_graph_profile_replays must be at least one")
    tuner = AutoTuner.get()
    if cache is not None and os.path.exists(cache):
        try:
            tuner.load_configs(cache)
        except ValueError as error:
            logger.warning("%s cannot be read and is ignored: %s", cache, error)
    with _block(tuner, tune_mode, tuning_buckets=tuning_buckets, round_up=round_up, skip_ops=skip_ops):
        yield
    if cache is not None and tune_mode:
        tuner.save_configs(cache)


__all__ = ["AutoTuner", "autotune", "get_autotune_process_group", "is_in_profile_measurement", "round_to_nearest_bucket",
           "set_autotune_process_group"]
