# SPDX-License-Identifier: Apache-2.0
"""Trace templates for functions of your own, and solutions that replace calls (docs/trace.md).

    rms = TraceTemplate("rmsnorm", {"batch_size": Var(), "hidden_size": Const(abbrev="h")},
                        {"x": Tensor(["batch_size", "hidden_size"])}, {"y": Tensor(["batch_size", "hidden_size"], dtype_from="x")})

    @flashinfer_api(trace=rms)
    def my_norm(x): ...

    my_norm.fi_trace(x=x)    # {"name": "rmsnorm_h4096", ...}
"""
from .solution import BuildSpec, Solution, SourceFile, SupportedBindings, SupportedLanguages
from .template import Const, Scalar, Tensor, TraceTemplate, Var, default_check, default_tolerances, standard_check, validate

__all__ = ["BuildSpec", "Const", "Scalar", "Solution", "SourceFile", "SupportedBindings", "SupportedLanguages", "Tensor", "TraceTemplate",
           "Var", "default_check", "default_tolerances", "standard_check", "validate"]
