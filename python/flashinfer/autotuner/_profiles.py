# SPDX-License-Identifier: Apache-2.0
"""From an op's inputs to buckets of shapes, and from a bucket to inputs that are measured."""
import threading

from ._config import DynamicDim, OptimizationProfile, StaticDim, _mapper
from .initializers import autotuner_initializer_rand_scaled


class Context(threading.local):
    """What the `autotune` blocks around a call of this thread say, the innermost last."""

    def __init__(self):
        self.blocks = []


class Profiles:
    """The part of AutoTuner that knows of shapes alone."""

    _instance = None

    # ---- what the blocks say ----
    def _innermost(self, name, default=None):
        return next((b[name] for b in reversed(self._context.blocks) if b.get(name) is not None), default)

    @property
    def _override_tuning_buckets(self):
        return self._innermost("tuning_buckets")

    @property
    def _override_round_up(self):
        return self._innermost("round_up", False)

    @property
    def _effective_skip_ops(self):
        return frozenset().union(*(b.get("skip_ops") or () for b in self._context.blocks))

    def get_effective_map_to_tuning_buckets(self, tuning_config, spec_idx=0):
        """The function from an extent to its bucket, with what the blocks around the call say."""
        spec = tuning_config.dynamic_tensor_specs[spec_idx]
        buckets = self._override_tuning_buckets
        if buckets is None and self._override_round_up and not callable(spec.gen_tuning_buckets):
            buckets = tuple(sorted(set(spec.gen_tuning_buckets)))
        return spec.map_to_tuning_buckets if buckets is None else _mapper(buckets, self._override_round_up)

    # ---- shapes ----
    @staticmethod
    def _shapes(inputs):
        return tuple(tuple(x.shape) if hasattr(x, "shape") else (0,) for x in inputs)

    @classmethod
    def _find_nearest_profile(cls, shapes, tuning_config):
        """The shapes with each extent that varies replaced by its bucket, and each that follows from others by -1."""
        tuner = cls._instance
        found = [list(s) for s in shapes]
        for i, spec in enumerate(tuning_config.dynamic_tensor_specs):
            mapper = spec.map_to_tuning_buckets if tuner is None else tuner.get_effective_map_to_tuning_buckets(tuning_config, i)
            bucket = mapper(shapes[spec.input_idx[0]][spec.dim_idx[0]])
            for at, dim in zip(spec.input_idx, spec.dim_idx):
                found[at][dim] = bucket
        for spec in tuning_config.constraint_specs:
            found[spec.input_idx][spec.dim_idx] = -1
        return tuple(map(tuple, found))

    def _generate_optimization_profiles(self, tuning_config, inputs):
        """One profile for each combination of buckets."""
        initializers = dict(tuning_config.tensor_initializers)
        shapes = [[[StaticDim(n) for n in shape] for shape in self._shapes(inputs)]]
        for spec in tuning_config.dynamic_tensor_specs:
            buckets = self._override_tuning_buckets
            if buckets is None:
                given = spec.gen_tuning_buckets
                buckets = given(self._shapes(inputs)[spec.input_idx[0]][spec.dim_idx[0]]) if callable(given) else given
            buckets = sorted(set(buckets))
            grown = []
            for base in shapes:
                for i, bucket in enumerate(buckets):
                    made = [list(s) for s in base]
                    for at, dim in zip(spec.input_idx, spec.dim_idx):
                        made[at][dim] = DynamicDim(bucket, bucket, buckets[i + 1] if i + 1 < len(buckets) else float("inf"))
                    grown.append(made)
            shapes = grown
        profiles = [OptimizationProfile(s, [initializers.get(i) for i in range(len(inputs))]) for s in shapes]
        for profile in profiles:
            for spec in tuning_config.constraint_specs:
                extent = spec.infer_shape(profile.get_opt_shapes())
                profile.shapes[spec.input_idx][spec.dim_idx] = DynamicDim(extent, extent, extent)
        return profiles

    def _prepare_input_tensors(self, profile, inputs):
        """Inputs of a profile's shapes: the caller's where their shape does not vary, new ones in place of the others."""
        made = []
        for i, (x, dims) in enumerate(zip(inputs, profile.shapes)):
            if hasattr(x, "shape") and any(isinstance(d, DynamicDim) for d in dims):
                make = profile.tensor_initializers[i] or autotuner_initializer_rand_scaled
                x = make(profile.get_opt_shapes()[i], x.dtype, x.device)
            made.append(x)
        return made
