# SPDX-License-Identifier: Apache-2.0
"""Calls with every kind of value, through whichever `flashinfer` is imported: FlashInfer's own or ours."""
import collections
import dataclasses
import enum

import numpy as np
import torch
from flashinfer.api_logging import flashinfer_api as api


class Color(enum.Enum):
    RED = "r"
    HALF = 0.5


class Level(enum.IntEnum):
    A = 4


class Bits(enum.Flag):
    X = 1
    Y = 2


class Text(str, enum.Enum):
    T = "t"


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Options:
    size: int = 3


class TwoTexts:
    def __repr__(self):
        return "for developers"

    def __str__(self):
        return "for readers"


class Mute:
    def __repr__(self):
        raise RuntimeError("no text")


class FP4Tensor:
    def __init__(self, shape):
        self.data = torch.zeros(2, 4, dtype=torch.uint8)
        self.scale = torch.ones(2, 1, dtype=torch.float8_e4m3fn)
        self.scale_start_index = 0
        self.original_shape = shape


class Integer(int):
    pass


@api
def one(x):
    return x


@api
def generator(x):
    return x


@api
def fp4(x):
    return x


@api
def unreadable(x):
    return x


@api
def defaults(a, b, *, c=1e-5, d=None, e="NHD", g=True, h=torch.bfloat16, i=Level.A, j=(1, 2)):
    return a


@api()
def anything(*xs, **kw):
    return xs


@api
def changing_default(x, seen=[]):
    seen.append(x)


@api
def nothing():
    return None


@api
def makes_list(x):
    return [x, 1]


@api
def makes_dict(x):
    return {"a": x, 3: [x, None]}


@api
def pair(x, y=2.0):
    return x, (x, y), Level.A, None


@api
def fail(x):
    raise ValueError("no")


@api
def outer(x):
    return one(x)


class FooWrapper:
    @api
    def __init__(self, ws, layout="NHD"):
        self.ws = ws

    @api
    def run(self, q, *, out=None):
        return q


class DerivedFooWrapper(FooWrapper):
    pass


class MoELayer:
    @api
    def __call__(self, x):
        return x


class Plain:
    @api
    def run(self, x):
        return x


DTYPES = ("float32 float16 bfloat16 float64 float8_e4m3fn float8_e5m2 float4_e2m1fn_x2 uint8 int8 uint16 int16 uint32 int32 uint64 "
          "int64 bool").split()
FOREIGN_DTYPES = "complex64 complex128 float8_e8m0fnu float8_e4m3fnuz float8_e5m2fnuz".split()


def of_dtype(name):
    dtype = getattr(torch, name)
    if name == "float4_e2m1fn_x2":
        return torch.arange(6, dtype=torch.uint8).view(dtype)
    if name == "float8_e8m0fnu":
        return torch.arange(120, 126, dtype=torch.uint8).view(dtype)
    return torch.arange(6).reshape(2, 3).to(dtype)


def numbers():
    """Values in [-0.25, 0.75) that no order of summing in float32 adds exactly."""
    many, state = [], 1
    for _ in range(100003):
        state = (state * 1664525 + 1013904223) % 2**32
        many.append((state >> 8) / 16777216.0 - 0.25)
    return torch.tensor(many)


def main():
    inf, nan = float("inf"), float("nan")
    t = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    defaults(t, t.t(), c=2.0)
    defaults(t, b=None, e="HND", h=torch.float16)
    anything(None, 1, 2.5, True, False, "it's", 'q"', 'both \' and "', "", complex(1, 2), complex(0, -0.5), complex(inf, nan))
    anything(inf, nan, -inf, -0.0, 1e22, 1e-5, 123456789.125, 1.1444091796875e-05, 2**53 + 1, -(2**63), Integer(3))
    anything(Color.RED, Color.HALF, Level.A, Bits.X, Bits.X | Bits.Y, Text.T)
    anything([], (), {}, [1, [2]], (1,), Point(1, 2), torch.Size([1, 2]), {"k": t, 3: [t]}, [(t, {"x": (t, 1)})])
    anything({Level.A: 1, (1, 2): None, None: 2.5, True: "x"}, collections.OrderedDict(a=1), {1: {2: {3: 4}}})
    anything(torch.float16, torch.float8_e8m0fnu, torch.device("cpu"), torch.device("cuda:1"), torch.device("cuda"), torch.strided)
    anything(object, b"x", range(3), slice(1, 2), {1}, frozenset(), Options(), TwoTexts(), Mute(), len, np.arange(3), np.float32(1.5))
    anything(k=t, g=torch.tensor([1, 2, 3], dtype=torch.int32), h=torch.tensor([True]), none=None)
    one(2**70)
    one("n\u00e9\n\x01\u4e2d")
    generator(torch.Generator().manual_seed(5))
    fp4(FP4Tensor((2, 8)))
    fp4(FP4Tensor(None))
    for dtype in DTYPES + FOREIGN_DTYPES:
        one(of_dtype(dtype))
    one(torch.tensor([1.5, nan, inf], dtype=torch.bfloat16))
    one(torch.tensor([-inf, 1.0]))
    one(torch.tensor(3.5))
    one(torch.zeros(0, 3))
    one(torch.zeros(1, 4)[:, :0])
    one(torch.ones(2, 1, 3)[:, :, ::2])
    one(torch.arange(32.0).reshape(4, 8)[:, 2:4])
    one(torch.arange(4.0).expand(3, 4))
    one(torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1))
    unreadable(torch.ones([1] * 9))
    unreadable(torch.zeros(2, device="meta"))
    one(torch.tensor([2**40, -1]))
    one(torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True))
    one(torch.nn.Parameter(torch.ones(2)))
    one([t[0], t[1]])
    one(torch.tensor([1 + 2j, 3 - 4j]).conj().imag)
    changing_default(1)
    changing_default(2)
    nothing()
    makes_list(t)
    makes_dict(t)
    pair(t)
    pair(t, y=t)
    one((t, 2, (t,)))
    outer(t)
    try:
        fail(t)
    except ValueError:
        pass
    FooWrapper(torch.zeros(4, dtype=torch.uint8)).run(t)
    DerivedFooWrapper(torch.zeros(4, dtype=torch.uint8), layout="HND").run(t, out=t)
    MoELayer()(t)
    Plain().run(t)
    one(FooWrapper(t))
    deep = 1
    for _ in range(10):
        deep = [deep]
    one(deep)
    many = numbers()
    one(many)
    one(many.half())
    one(many.to(torch.float8_e5m2))


if __name__ == "__main__":
    main()
