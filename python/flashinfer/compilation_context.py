# SPDX-License-Identifier: Apache-2.0
"""The GPU architectures that CUDA sources are compiled for: FLASHINFER_CUDA_ARCH_LIST, else this machine's GPUs."""
import os


def _architectures():
    from .jit._library import call

    return {(major, minor) for major, minor, _ in call("architectures", os.environ.get("FLASHINFER_CUDA_ARCH_LIST", ""))}


class CompilationContext:
    """`TARGET_CUDA_ARCHS` is a set of (9, "0a"); it is read when it is first needed."""

    COMMON_NVCC_FLAGS = ["-DFLASHINFER_ENABLE_FP8_E8M0", "-DFLASHINFER_ENABLE_FP4_E2M1"]

    def __init__(self):
        self._archs = None

    @property
    def TARGET_CUDA_ARCHS(self):
        if self._archs is None:
            self._archs = _architectures()
        return self._archs

    @TARGET_CUDA_ARCHS.setter
    def TARGET_CUDA_ARCHS(self, archs):
        self._archs = set(archs)

    def get_nvcc_flags_list(self, supported_major_versions=None, map_sm107_to_100f=False):
        """["-gencode=arch=compute_90a,code=sm_90a", ...] for the targets among these major versions (None: all), then
        COMMON_NVCC_FLAGS. RuntimeError when none is among them. `map_sm107_to_100f` changes nothing: there is no target 10.7."""
        del map_sm107_to_100f
        chosen = [(major, minor) for major, minor in sorted(self.TARGET_CUDA_ARCHS)
                  if supported_major_versions is None or major in supported_major_versions]
        if not chosen:
            have = " ".join(f"{major}.{minor}" for major, minor in sorted(self.TARGET_CUDA_ARCHS)) or "none"
            raise RuntimeError(f"No supported CUDA architectures found for major versions {supported_major_versions}. Targets are {have}: "
                               "those of FLASHINFER_CUDA_ARCH_LIST, or when it is not set of this machine's GPUs.")
        return [f"-gencode=arch=compute_{major}{minor},code=sm_{major}{minor}" for major, minor in chosen] + self.COMMON_NVCC_FLAGS


def cutlass_supports_sm107():
    """False: CUTLASS is not used."""
    return False
