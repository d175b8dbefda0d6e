# SPDX-License-Identifier: Apache-2.0
"""Exact top-k and its transforms for sparse attention, made from the library's registry; `topk` is `top_k`."""


def __getattr__(name):
    if name == "topk" and "top_k" in globals():
        return globals()["top_k"]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
