# SPDX-License-Identifier: Apache-2.0
"""Green contexts over a fake CUDA driver: which parts of a GPU the streams get."""
import sys
import types

import pytest
import torch

from flashinfer import green_ctx


class Driver:
    """132 SMs of compute capability 9.0 in groups of 8; a resource is divided once, and what is left of it not at all."""
    CUdevResourceType = types.SimpleNamespace(CU_DEV_RESOURCE_TYPE_SM="sm")
    CUgreenCtxCreate_flags = types.SimpleNamespace(CU_GREEN_CTX_DEFAULT_STREAM=1)
    CUstream_flags = types.SimpleNamespace(CU_STREAM_NON_BLOCKING=1)
    CUdevice_attribute = types.SimpleNamespace(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR=9, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR=0)

    def __init__(self):
        self.streams = 0

    def resource(self, count, whole=False):
        return types.SimpleNamespace(sm=types.SimpleNamespace(smCount=count), whole=whole)

    def cuDeviceGet(self, index):
        return 0, index

    def cuDeviceGetAttribute(self, attribute, device):
        return 0, attribute

    def cuDeviceGetDevResource(self, device, kind):
        assert (device, kind) == (1, "sm")
        return 0, self.resource(132, True)

    def cuDevSmResourceSplitByCount(self, groups, resource, flags, count):
        count = -(-count // 8) * 8
        if not resource.whole or groups * count > resource.sm.smCount:
            return types.SimpleNamespace(value=914, name="CUDA_ERROR_INVALID_RESOURCE_TYPE"), [], 0, None
        return 0, [self.resource(count) for _ in range(groups)], groups, self.resource(resource.sm.smCount - groups * count)

    def cuDevResourceGenerateDesc(self, resources, count):
        assert len(resources) == count == 1
        return 0, resources[0]

    def cuGreenCtxCreate(self, described, device, flags):
        assert device == flags == 1
        return 0, described

    def cuGreenCtxGetDevResource(self, context, kind):
        return 0, self.resource(context.sm.smCount, True)

    def cuGreenCtxStreamCreate(self, context, flags, priority):
        self.streams += 1
        return 0, 1000 * self.streams + context.sm.smCount


@pytest.fixture
def driver(monkeypatch):
    fake = Driver()
    for name in ("cuda", "cuda.bindings"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["cuda.bindings"].driver = fake
    monkeypatch.setattr(torch, "empty", lambda *shape, device: None)
    monkeypatch.setattr(torch.cuda, "ExternalStream", lambda stream, device: (stream, device.index))
    return fake


def counts(resources):
    return [r.sm.smCount for r in resources]


def test_parts_of_one_size(driver):
    streams, resources = green_ctx.split_device_green_ctx(torch.device("cuda:1"), 2, 10)
    assert counts(resources) == [16, 16, 100] and streams == [(1016, 1), (2016, 1), (3100, 1)]
    with pytest.raises(RuntimeError, match="CUDA error code=914.CUDA_ERROR_INVALID_RESOURCE_TYPE"):
        green_ctx.split_device_green_ctx("cuda:1", 5, 32)


def test_parts_of_several_sizes(driver):
    streams, resources = green_ctx.split_device_green_ctx_by_sm_count("cuda:1", [3, 17, 24])
    assert counts(resources) == [8, 24, 24, 76] and [s for s, _ in streams] == [1008, 2024, 3024, 4076]
    for wrong in ([], [8, 0]):
        with pytest.raises(ValueError, match="sm_counts is"):
            green_ctx.split_device_green_ctx_by_sm_count("cuda:1", wrong)


def test_without_a_gpu_or_its_driver(monkeypatch):
    with pytest.raises(ValueError, match="dev is cpu, but green contexts divide a GPU"):
        green_ctx.split_device_green_ctx(torch.device("cpu"), 1, 8)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(ImportError, match="install the package cuda-python"):
        green_ctx.get_device_resource(0)
