# SPDX-License-Identifier: Apache-2.0
"""Green contexts: streams whose kernels run on some of a GPU's multiprocessors (SMs) alone, made with the CUDA driver through the package
`cuda-python`. A resource is the driver's CUdevResource; `resource.sm.smCount` tells its SMs."""
from ._one_gpu import checkCudaErrors as _checked
from ._one_gpu import get_sm_count_constraint


def _driver():
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise ImportError("green contexts need the Python bindings of the CUDA driver: install the package cuda-python (12.4 or later)") from error
    return driver


def _gpu(dev):
    """`dev` as a torch.device with an index.

    Raises:
        ValueError: it is no GPU
    """
    import torch

    dev = torch.device(dev)
    if dev.type != "cuda":
        raise ValueError(f"dev is {dev}, but green contexts divide a GPU: pass a CUDA device")
    return torch.device("cuda", torch.cuda.current_device() if dev.index is None else dev.index)


def get_cudevice(dev):
    """The driver's CUdevice of a torch.device, whose primary context is made if there is none."""
    import torch

    dev, driver = _gpu(dev), _driver()
    torch.empty(1, device=dev)
    return _checked(driver.cuDeviceGet(dev.index))


def get_device_resource(cu_dev):
    """All SMs of a device."""
    driver = _driver()
    return _checked(driver.cuDeviceGetDevResource(cu_dev, driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM))


def split_resource(resource, num_groups, min_count):
    """([num_groups resources of at least min_count SMs], what is left); the driver rounds min_count up to what the GPU can divide."""
    groups, _, rest = _checked(_driver().cuDevSmResourceSplitByCount(num_groups, resource, 0, min_count))
    return groups, rest


def split_resource_by_sm_count(cu_dev, resource, sm_counts):
    """([a resource for each of sm_counts], what is left); counts are rounded up to what the GPU can divide.

    Raises:
        ValueError: no counts, a count below 1
        RuntimeError: more SMs than there are
    """
    if not sm_counts or min(sm_counts) < 1:
        raise ValueError(f"sm_counts is {list(sm_counts)}, but must be numbers of at least 1")
    driver = _driver()
    kind = driver.CUdevice_attribute
    capability = [_checked(driver.cuDeviceGetAttribute(a, cu_dev)) for a in (kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)]
    least, step = get_sm_count_constraint(*capability)
    parts = []
    for count in sm_counts:
        (part,), rest = split_resource(resource, 1, -(-max(count, least) // step) * step)
        parts.append(part)
        # The driver divides the resource of a context, not what a division has left.
        resource = _checked(driver.cuGreenCtxGetDevResource(_context(cu_dev, rest), driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM))
    return parts, resource


def _context(cu_dev, resource):
    driver = _driver()
    described = _checked(driver.cuDevResourceGenerateDesc([resource], 1))
    return _checked(driver.cuGreenCtxCreate(described, cu_dev, driver.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM))


def create_green_ctx_streams(cu_dev, resources):
    """A torch stream for each resource; its context lives as long as the process."""
    import torch

    driver, streams = _driver(), []
    for resource in resources:
        stream = _checked(driver.cuGreenCtxStreamCreate(_context(cu_dev, resource), driver.CUstream_flags.CU_STREAM_NON_BLOCKING, 0))
        streams.append(torch.cuda.ExternalStream(int(stream), device=torch.device("cuda", int(cu_dev))))
    return streams


def split_device_green_ctx(dev, num_groups, min_count):
    """(streams, resources) of num_groups parts of at least min_count SMs, and of the SMs that are left.

    Raises:
        ValueError: dev is no GPU
        ImportError: cuda-python is not installed
        RuntimeError: more SMs than there are
    """
    cu_dev = get_cudevice(dev)
    groups, rest = split_resource(get_device_resource(cu_dev), num_groups, min_count)
    resources = [*groups, rest]
    return create_green_ctx_streams(cu_dev, resources), resources


def split_device_green_ctx_by_sm_count(dev, sm_counts):
    """(streams, resources) of a part for each of sm_counts, and of the SMs that are left; errors as of split_device_green_ctx."""
    cu_dev = get_cudevice(dev)
    parts, rest = split_resource_by_sm_count(cu_dev, get_device_resource(cu_dev), sm_counts)
    resources = [*parts, rest]
    return create_green_ctx_streams(cu_dev, resources), resources
