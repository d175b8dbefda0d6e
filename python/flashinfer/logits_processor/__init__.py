# SPDX-License-Identifier: Apache-2.0
"""Pipelines from logits to tokens, put together from processors.

    pipe = LogitsPipe([Temperature(), Softmax(), TopP(), Sample()])
    ids = pipe(logits, temperature=0.7, top_p=0.9)

Each processor becomes an operator for the kind of tensor it meets (logits, probabilities, indices); neighbours that one op of the
library does at once are fused. What is known at run time (temperature, top_k, top_p, min_p, indices, generator, seed, offset) is
passed with the call. A C++ program calls the ops themselves (`flashinfer/ops/sampling/op.h`): this module has no kernels.
"""
import abc
import typing

from .. import _modules
from .._logits_ops import (_I, _L, _P, _Built, CompileError, FusedLogitsTopKTopPSampleOp, FusedProbsMinPSampleOp, FusedProbsTopKSampleOp,
                           FusedProbsTopKThenTopPSampleOp, FusedProbsTopKTopPSampleOp, FusedProbsTopPSampleOp, FusedTemperatureSoftmaxOp,
                           LegalizationError, LogitsSampleOp, LogitsTopKOp, MinPOp, Op, ParameterizedOp, ProbsSampleOp, ProbsTopKOp,
                           SoftmaxOp, TaggedTensor, TemperatureOp, TensorType, TopPOp)

__all__ = ["CompileError", "FusionRule", "LegalizationError", "LogitsPipe", "LogitsProcessor", "MinP", "Op", "ParameterizedOp", "Sample",
           "Softmax", "TaggedTensor", "Temperature", "TensorType", "TopK", "TopP", "compile_pipeline", "legalize_processors"]
__getattr__ = _modules.names_of(__name__)


# ---- processors ----
class LogitsProcessor(abc.ABC):
    """A step of a pipeline; `legalize` gives the operators that do it to a tensor of this kind."""

    _parameters = None  # the names it takes, where they are known

    def __init__(self, **params):
        for name in params:
            if self._parameters is not None and name not in self._parameters:
                raise TypeError(f"{type(self).__name__} got an unexpected keyword argument {name!r}; it takes {', '.join(self._parameters)}")
        self.params = params

    @abc.abstractmethod
    def legalize(self, input_type):
        ...

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.params.items() if v is not None)})"


def _processor(name, operators, doc, **options):
    """A processor with an operator for each kind of tensor it takes, and options of its own with their defaults."""
    takes = " or ".join(str(t) for t in operators)

    def legalize(self, input_type):
        if input_type not in operators:
            raise LegalizationError(f"{name} can only be applied to {takes}, got {input_type}")
        return [operators[input_type](**self.params)]

    members = {"legalize": legalize, "__module__": __name__, "__doc__": doc, "_takes": tuple(operators),
               "_parameters": tuple(dict.fromkeys([n for o in operators.values() for n in (*o.takes, *o.passes)] + list(options)))}
    if options:
        made = {}
        exec("def __init__(self, " + ", ".join(f"{k}={v!r}" for k, v in options.items()) + ", **params):\n    LogitsProcessor.__init__(self, "
             + ", ".join(f"{k}={k}" for k in options) + ", **params)", {"LogitsProcessor": LogitsProcessor}, made)
        members["__init__"] = made["__init__"]
    return type(name, (LogitsProcessor,), members)


Temperature = _processor("Temperature", {_L: TemperatureOp}, "Divides logits by `temperature`, a number or one a row.")
Softmax = _processor("Softmax", {_L: SoftmaxOp}, "Makes probabilities of logits; once in a pipeline.", enable_pdl=None)
TopK = _processor("TopK", {_L: LogitsTopKOp, _P: ProbsTopKOp}, "Keeps the `top_k` largest: masks logits, renormalises probabilities. "
                  "With joint_topk_topp, a TopP and a Sample behind it draw under both conditions at once.", joint_topk_topp=False)
TopP = _processor("TopP", {_P: TopPOp}, "Keeps the largest probabilities up to a mass of `top_p`.")
MinP = _processor("MinP", {_P: MinPOp}, "Keeps probabilities of at least `min_p` times the largest.")
Sample = _processor("Sample", {_L: LogitsSampleOp, _P: ProbsSampleOp}, "Draws a token of each row.", deterministic=True)


def legalize_processors(processors, initial_type=TensorType.LOGITS):
    """The operators of a list of processors. LegalizationError names the one that does not fit."""
    ops, current = [], initial_type
    for i, processor in enumerate(processors):
        try:
            ops += processor.legalize(current)
        except Exception as error:
            raise LegalizationError(f"Failed to legalize processor {i} ({type(processor).__name__}): {error}") from error
        current = ops[-1].OUT if ops else current
    return ops


# ---- checks and fusion ----
class FusionRule(typing.NamedTuple):
    """`build(window)` replaces neighbours of the classes `pattern` where `guard(window)` holds; larger `prio` first."""

    pattern: tuple
    guard: typing.Callable
    build: typing.Callable
    prio: int = 0


def _fused(target):
    def build(window):
        params = {}
        for op in window:
            params.update(op.default_params)
        return target(**params)

    return build


def _always(window):
    return True


def _asked_joint(window):
    return any(op.default_params.get("joint_topk_topp") for op in window)


def _not_joint(window):
    return not _asked_joint(window)


# Several neighbours become the op that a program calls for all of them, so that a pipeline draws its tokens: probabilities rounded
# between two steps moved a draw in 1 of 989 rows of 32000.
DEFAULT_FUSION_RULES = [
    FusionRule((TemperatureOp, SoftmaxOp), _always, _fused(FusedTemperatureSoftmaxOp), 120),
    FusionRule((SoftmaxOp, ProbsTopKOp, TopPOp, ProbsSampleOp), _asked_joint, _fused(FusedLogitsTopKTopPSampleOp), 110),
    FusionRule((ProbsTopKOp, TopPOp, ProbsSampleOp), _asked_joint, _fused(FusedProbsTopKTopPSampleOp), 100),
    FusionRule((ProbsTopKOp, TopPOp, ProbsSampleOp), _not_joint, _fused(FusedProbsTopKThenTopPSampleOp), 100),
    FusionRule((ProbsTopKOp, ProbsSampleOp), _always, _fused(FusedProbsTopKSampleOp), 10),
    FusionRule((TopPOp, ProbsSampleOp), _always, _fused(FusedProbsTopPSampleOp), 10),
    FusionRule((MinPOp, ProbsSampleOp), _always, _fused(FusedProbsMinPSampleOp), 10),
]


def _check_kinds(ops):
    for i in range(1, len(ops)):
        if ops[i].IN is not ops[i - 1].OUT:
            raise CompileError(f"Type mismatch at operator {i} ({type(ops[i]).__name__}): it takes {ops[i].IN}, but {ops[i - 1].OUT} "
                               "comes before it")


def _check_rules(ops):
    if sum(isinstance(op, (SoftmaxOp, FusedTemperatureSoftmaxOp)) for op in ops) > 1:
        raise CompileError("Multiple Softmax operators found. Only one Softmax is allowed per pipeline.")
    for i, op in enumerate(ops[:-1]):
        if op.OUT is TensorType.INDICES:
            raise CompileError(f"Operator {i} ({type(op).__name__}) gives indices, so it must be the last one")


def _fuse(ops, rules):
    ops = list(ops)
    for rule in sorted(rules, key=lambda r: -r.prio):
        n, i = len(rule.pattern), 0
        while i + n <= len(ops):
            window = ops[i:i + n]
            if all(type(op) is kind for op, kind in zip(window, rule.pattern)) and rule.guard(window):
                ops[i:i + n] = [rule.build(window)]
            i += 1
    return ops


def compile_pipeline(ops, custom_fusion_rules=None, custom_validity_checks=None):
    """Checks operators against each other and fuses neighbours. CompileError: they do not fit."""
    if not ops:
        raise CompileError("Cannot compile empty operator list")
    _check_kinds(ops)
    for check in [_check_rules, *(custom_validity_checks or ())]:
        check(ops)
    return _fuse(ops, [*DEFAULT_FUSION_RULES, *(custom_fusion_rules or ())])


class LogitsPipe:
    """Processors in order; `pipe(x, **parameters)` runs them. With compile=False nothing is fused until `compile()`.

    Raises:
        ValueError: no processor, one that does not fit, or `input_type` missing where the first one takes logits and probabilities;
            at a call, the operator that failed and why
    """

    def __init__(self, processors, compile=True, input_type=None, custom_fusion_rules=None, custom_validity_checks=None):
        if not processors:
            raise ValueError("Pipeline cannot be empty")
        self.processors = list(processors)
        self.compiled_ops = []
        try:
            self._initial_type = input_type or self._inferred()
            self.ops = legalize_processors(self.processors, self._initial_type)
        except LegalizationError as error:
            raise ValueError(f"Pipeline creation failed: {error}") from error
        if compile:
            self.compile(custom_fusion_rules, custom_validity_checks)

    def _inferred(self):
        first = self.processors[0]
        takes = []
        for kind in (TensorType.LOGITS, TensorType.PROBS):
            try:
                first.legalize(kind)
                takes.append(kind)
            except Exception:  # a processor may refuse in its own way
                continue
        if len(takes) > 1:
            raise LegalizationError(f"Cannot infer input type: {type(first).__name__} can accept both LOGITS and PROBS; pass input_type")
        return takes[0] if takes else TensorType.LOGITS

    @property
    def initial_type(self):
        return self._initial_type

    def compile(self, custom_fusion_rules=None, custom_validity_checks=None):
        try:
            self.compiled_ops = compile_pipeline(self.ops, custom_fusion_rules, custom_validity_checks)
        except CompileError as error:
            raise ValueError(f"Compilation failed: {error}") from error

    def _refuse_unknown(self, given):
        """TypeError for a name that no operator takes. One of the user's own may take any."""
        if all(isinstance(op, _Built) for op in self.ops):
            known = list(dict.fromkeys(name for op in self.ops for name in (*op.takes, *op.passes)))
            for name in given:
                if name not in known:
                    raise TypeError(f"LogitsPipe got an unexpected keyword argument {name!r}; its operators take {', '.join(known)}")

    def __call__(self, x, **kwargs):
        self._refuse_unknown(kwargs)
        tensor = x if isinstance(x, TaggedTensor) else TaggedTensor(x, self._initial_type)
        for i, op in enumerate(self.compiled_ops or self.ops):
            try:
                tensor = op(tensor, **kwargs)
            except Exception as error:
                raise ValueError(f"Error executing operator {i} ({type(op).__name__}): {error}") from error
        return tensor.data

    def __repr__(self):
        def names(items):
            return " -> ".join(type(item).__name__ for item in items)

        return f"LogitsPipe([{names(self.processors)}], ops=[{names(self.ops)}], compiled_ops=[{names(self.compiled_ops)}])"
