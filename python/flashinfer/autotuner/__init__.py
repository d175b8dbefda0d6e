# SPDX-License-Identifier: Apache-2.0
"""Choosing the fastest of several ways to compute an op, by measuring them (`flashinfer.autotuner.autotuner`)."""
from ._config import (AutoTunerStatistics, ConstraintSpec, Dim, DynamicDim, DynamicTensorSpec, OptimizationProfile, ProfilingCacheKey,  # noqa: F401
                      StaticDim, TunableRunner, TuningConfig, make_bucket_mapper, round_to_nearest_bucket)
from ._files import _METADATA_KEY, _collect_metadata, _json_to_tactic, _tactic_to_json, _tactic_to_json_hashable  # noqa: F401
from ._managed import MeasurementPolicy, autotune_v2, autotune_v2_reload  # noqa: F401
from .autotuner import (AutoTuner, autotune, get_autotune_process_group, is_in_profile_measurement,  # noqa: F401
                        set_autotune_process_group)
from .initializers import (autotuner_initializer_empty, autotuner_initializer_ones, autotuner_initializer_rand,  # noqa: F401
                           autotuner_initializer_rand_scaled, autotuner_initializer_randn, autotuner_initializer_zeros)
