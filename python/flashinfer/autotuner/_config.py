# SPDX-License-Identifier: Apache-2.0
"""What a program says of an op that is tuned: which extents vary, in which buckets, and what its runners can do."""
import abc
import bisect
import dataclasses
import functools
import hashlib
import sys
from typing import Any, Callable, Iterable, Optional, Tuple, Union


# ---- buckets ----
def round_to_nearest_bucket(x, buckets, round_map=False):
    """The largest of the rising `buckets` that is at most x (`round_map`: the smallest that is at least x), the first or last one beyond.

    Raises:
        ValueError: no buckets
    """
    if not buckets:
        raise ValueError("buckets must be non-empty")
    if round_map:
        return buckets[min(bisect.bisect_left(buckets, x), len(buckets) - 1)]
    return buckets[max(bisect.bisect_right(buckets, x) - 1, 0)]


@functools.lru_cache(maxsize=None)
def _mapper(buckets, round_map):
    return lambda x: round_to_nearest_bucket(x, buckets, round_map)


def make_bucket_mapper(buckets, round_map=False):
    """`round_to_nearest_bucket` of sorted buckets, one function for equal arguments."""
    if not buckets:
        raise ValueError("buckets must be non-empty")
    return _mapper(tuple(sorted(set(buckets))), bool(round_map))


# ---- shapes ----
@dataclasses.dataclass(frozen=True)
class StaticDim:
    """An extent that does not vary."""
    val: int


@dataclasses.dataclass(frozen=True)
class DynamicDim:
    """An extent in a bucket: from `min` up to `max`, measured at `opt`."""
    min: int
    opt: int
    max: int


Dim = Union[DynamicDim, StaticDim]


def _opt(dim):
    return dim.opt if isinstance(dim, DynamicDim) else dim.val


@dataclasses.dataclass(frozen=True)
class DynamicTensorSpec:
    """One extent that varies, in all places where it stands.

    Args:
        input_idx, dim_idx: the places: input and dimension, pairwise
        gen_tuning_buckets: what is measured: extents, or a function from the extent of the call to extents
        map_to_tuning_buckets: the extent of a call -> its bucket
    """
    input_idx: Tuple[int, ...]
    dim_idx: Tuple[int, ...]
    gen_tuning_buckets: Union[Tuple[int, ...], Callable[[int], Iterable[int]]]
    map_to_tuning_buckets: Callable[[int], int]


@dataclasses.dataclass(frozen=True)
class ConstraintSpec:
    """An extent that follows from others: `infer_shape(shapes)` is that of dimension `dim_idx` of input `input_idx`."""
    input_idx: int
    dim_idx: int
    infer_shape: Callable


@dataclasses.dataclass(frozen=True, **({"kw_only": True} if sys.version_info >= (3, 10) else {}))
class TuningConfig:
    """How an op is tuned.

    Args:
        dynamic_tensor_specs, constraint_specs: extents that vary
        tensor_initializers: (input, initializer) pairs for inputs that are made anew; others hold random numbers
        use_cold_l2_cache: measured calls find their inputs in memory, not in a cache
        profiling_repeat: measured calls; None: the tuner's
        inputs_pre_hook: inputs -> inputs, before they are measured
        others: for GPUs; nothing here
    """
    dynamic_tensor_specs: Tuple[DynamicTensorSpec, ...] = ()
    constraint_specs: Tuple[ConstraintSpec, ...] = ()
    tensor_initializers: Tuple[Tuple[int, Callable], ...] = ()
    use_cold_l2_cache: bool = False
    use_cuda_graph: bool = False
    cuda_graph_profile_replays: int = 1
    profiling_repeat: Optional[int] = None
    use_cold_l2_graph_replay: bool = False
    value_aware_input_indices: Tuple[int, ...] = ()
    profile_arena_input_indices: Tuple[int, ...] = ()
    inputs_pre_hook: Optional[Callable] = None

    def __post_init__(self):
        for name in ("cuda_graph_profile_replays", "profiling_repeat"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be positive, got {value}")


@dataclasses.dataclass
class OptimizationProfile:
    """The shapes of one bucket, and how inputs of them are made (None: random numbers)."""
    shapes: list
    tensor_initializers: list

    def get_opt_shapes(self):
        """The shapes that are measured."""
        return tuple(tuple(_opt(d) for d in shape) for shape in self.shapes)

    get_hash_key = get_opt_shapes

    def __hash__(self):
        return hash(self.get_hash_key())


# ---- runners and keys ----
class TunableRunner(abc.ABC):
    """Something that computes an op in several ways, its tactics. Subclass it, and let `AutoTuner.choose_one` choose."""

    @abc.abstractmethod
    def get_valid_tactics(self, inputs, profile):
        """The tactics for such inputs: numbers, or tuples and lists of numbers."""

    @abc.abstractmethod
    def forward(self, inputs, tactic=-1, do_preparation=False, **kwargs):
        """Computes the op. Tactic -1 always works. With `do_preparation` a call may do what is done once, before tactics are measured."""

    def get_cache_key_extras(self, inputs):
        """What a winner depends on beside shapes: numbers, text, dtypes."""
        return ()

    def precompile_tactics(self, inputs, tactics, profile, **kwargs):
        """Prepares all tactics at once; False: nothing was done, and `forward(do_preparation=True)` is called instead."""
        return False

    def __call__(self, inputs, **kwargs):
        return self.forward(inputs, **kwargs)

    def __hash__(self):
        """Runners of one class with equal attributes share their winners; override it if others count."""
        state = sorted((k, repr(v)) for k, v in vars(self).items())
        return int.from_bytes(hashlib.sha256(repr((type(self).__name__, state)).encode()).digest()[:7], "little")


@dataclasses.dataclass(frozen=True)
class ProfilingCacheKey:
    """What a winner is kept under. The text for files leaves the runner's hash out, which differs between processes."""
    custom_op: str
    runner_class_name: str
    runner_hash: int
    nearest_profile: Tuple[Tuple[int, ...], ...]
    extras: Tuple[Any, ...] = ()

    @property
    def key_fields(self):
        return (self.custom_op, self.runner_class_name, self.nearest_profile, self.extras)

    @property
    def file_key(self):
        return str(self.key_fields)


@dataclasses.dataclass
class AutoTunerStatistics:
    """What a tuner did, by op; `failed_tactics` by "op::Runner", as TacticsBlocklist.save takes them."""
    cache_misses: int = 0
    cache_miss_config_collection: dict = dataclasses.field(default_factory=dict)
    failed_profiling_count: dict = dataclasses.field(default_factory=dict)
    tuned_op_total_configs: dict = dataclasses.field(default_factory=dict)
    tuned_op_successful_configs: dict = dataclasses.field(default_factory=dict)
    failed_tactics: dict = dataclasses.field(default_factory=dict)

    def __str__(self):
        lines = [f"Cache misses: {self.cache_misses}"]
        lines += [f"  {op}: {self.tuned_op_successful_configs.get(op, 0)} of {total} configurations measured"
                  for op, total in self.tuned_op_total_configs.items()]
        return "\n".join(lines) + "\n"
