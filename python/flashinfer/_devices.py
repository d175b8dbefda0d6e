# SPDX-License-Identifier: Apache-2.0
"""What programs ask about devices. On a machine without a GPU the questions have answers; what asks for a property that only GPUs
have is an error that names the device."""
import functools
import importlib.util
import sys


def version_at_least(version, base_version):
    def numbers(text):
        return tuple(int("".join(c for c in part if c.isdigit()) or 0) for part in str(text).partition("+")[0].split(".")[:3])

    return numbers(version) >= numbers(base_version)


def _is_cuda(device):
    return str(device).partition(":")[0] == "cuda"


def get_compute_capability(device):
    """(major, minor) of a GPU.

    Raises:
        ValueError: the device is no GPU, or torch sees none
    """
    if not _is_cuda(device):
        raise ValueError(f"get_compute_capability: device must be a cuda device, but is {device}")
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        raise ValueError(f"get_compute_capability: device is {device}, but this program sees no GPU")
    return torch.cuda.get_device_capability(device)


def _capability(device):
    try:
        return tuple(get_compute_capability(device))
    except ValueError:
        return None


def _cuda_version_at_least(version):
    torch = sys.modules.get("torch")
    found = getattr(getattr(torch, "version", None), "cuda", None)
    return found is not None and version_at_least(found, version)


def _make_question(name, capabilities, cuda):
    def question(device):
        return _capability(device) in capabilities and _cuda_version_at_least(cuda)

    question.__name__ = question.__qualname__ = name
    which = ", ".join(f"{major}.{minor}" for major, minor in capabilities)
    question.__doc__ = f"True on a GPU of compute capability {which} with CUDA {cuda} or newer; False elsewhere, never an error."
    return question


is_sm90a_supported = _make_question("is_sm90a_supported", ((9, 0),), "12.3")
is_sm100a_supported = _make_question("is_sm100a_supported", ((10, 0), (10, 3)), "12.8")
is_sm100f_supported = _make_question("is_sm100f_supported", ((10, 0), (10, 3)), "12.9")
is_sm110a_supported = _make_question("is_sm110a_supported", ((11, 0),), "13.0")
is_sm120a_supported = _make_question("is_sm120a_supported", ((12, 0),), "12.8")
is_sm120f_supported = _make_question("is_sm120f_supported", ((12, 0),), "12.9")
is_sm121a_supported = _make_question("is_sm121a_supported", ((12, 1),), "12.9")
is_sm12x_supported = _make_question("is_sm12x_supported", ((12, 0), (12, 1)), "12.8")


def device_support_pdl(device):
    """True where kernels may start before those they depend on have ended (compute capability 9.0 and newer)."""
    return (_capability(device) or (0, 0)) >= (9, 0)


def determine_gemm_backend(device):
    """Whose kernels products on this device use: "cpu" off the GPU, "sm90" on compute capability 9.0 with CUDA 12.3, else "sm80"."""
    if not _is_cuda(device):
        return "cpu"
    return "sm90" if is_sm90a_supported(device) else "sm80"


def get_device_index(device):
    """The index of a GPU, of torch's current one where the device has none; 0 of any other device."""
    import torch

    device = torch.device(device)
    if device.index is not None:
        return device.index
    return torch.cuda.current_device() if device.type == "cuda" else 0


def get_device_properties(device):
    """`torch.cuda.get_device_properties`.

    Raises:
        ValueError: the device is no GPU, or torch sees none
    """
    get_compute_capability(device)
    return sys.modules["torch"].cuda.get_device_properties(device)


def get_device_name(device):
    """The name of a GPU; ValueError of any other device."""
    return get_device_properties(device).name


def get_device_sm_count(device):
    """The multiprocessors of a GPU; ValueError of any other device."""
    return get_device_properties(device).multi_processor_count


def get_shared_bytes_per_block_optin(device):
    """The shared memory that a block of a GPU may ask for, in bytes; ValueError of any other device."""
    return get_device_properties(device).shared_memory_per_block_optin


def get_default_generators(device):
    """Torch's default generator of a GPU; ValueError of any other device."""
    get_compute_capability(device)
    return sys.modules["torch"].cuda.default_generators[get_device_index(device)]


CVT_RS_SUPPORTED_ARCHES = {(10, 0): "sm_100a", (10, 3): "sm_103a", (10, 7): "sm_107a"}


def cvt_rs_supported_arches_text():
    """The architectures whose conversions round stochastically, for messages."""
    return ", ".join(CVT_RS_SUPPORTED_ARCHES.values())


def is_cvt_rs_supported(device=None):
    """Whether conversions on this GPU (torch's current one by default) round stochastically; False elsewhere, never an error."""
    return _capability("cuda" if device is None else device) in CVT_RS_SUPPORTED_ARCHES


def get_gpu_memory_bandwidth(device):
    """The peak rate of a GPU's memory in GB/s: two transfers a clock over its bus. ValueError of any other device.

    Raises:
        NotImplementedError: this torch does not tell clock and bus
    """
    if getattr(device, "type", None) != "cuda":
        raise ValueError(f"Device must be a CUDA device, got {device}")
    properties = get_device_properties(device)
    kilohertz, bits = getattr(properties, "memory_clock_rate", None), getattr(properties, "memory_bus_width", None)
    if not kilohertz or not bits:
        raise NotImplementedError("get_gpu_memory_bandwidth: torch's device properties have no memory_clock_rate and memory_bus_width")
    return 2 * kilohertz * 1e3 * bits / 8 / 1e9


def get_globaltimer_kernel():
    """None, as in FlashInfer where the kernel that reads the GPU's timer cannot be built: there is none here."""
    return None


@functools.cache
def is_confidential_compute():
    """False: whether a GPU runs in confidential-computing mode is not asked."""
    return False


def get_cuda_python_version():
    """The version of the package cuda-python.

    Raises:
        ModuleNotFoundError: it is not installed
    """
    import importlib.metadata

    try:
        return importlib.metadata.version("cuda-python")
    except importlib.metadata.PackageNotFoundError:
        raise ModuleNotFoundError("No module named 'cuda' (cuda-python is not installed)", name="cuda") from None


def has_cuda_cudart():
    """Whether cuda-python has the module `cuda.cudart`; False where it is not installed."""
    return importlib.util.find_spec("cuda") is not None and importlib.util.find_spec("cuda.cudart") is not None


def has_flashinfer_jit_cache():
    """True when precompiled kernels are there: in the wheel, in a package beside it or in $FLASHINFER_AOT_DIR."""
    from .jit import env

    return env.has_flashinfer_jit_cache()
