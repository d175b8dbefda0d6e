# SPDX-License-Identifier: Apache-2.0
"""State-space models."""
from .selective_state_update import (gen_selective_state_update_module, gen_selective_state_update_sm90_module,
                                     gen_selective_state_update_sm100_module)
from .seq_chunk_cumsum import gen_seq_chunk_cumsum_module
