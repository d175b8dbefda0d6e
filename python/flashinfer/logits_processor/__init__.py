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


def joint_topk_topp_sampleprobs_guard(window):
    """Whether top-k of the window asks for both filters at once."""
    return any(op.default_params.get("joint_topk_topp") for op in window)


def _not_joint(window):
    return not joint_topk_topp_sampleprobs_guard(window)


build_temperature_softmax, build_topk_sampling = _fused(FusedTemperatureSoftmaxOp), _fused(FusedProbsTopKSampleOp)
build_topp_sampling, build_minp_sampling = _fused(FusedProbsTopPSampleOp), _fused(FusedProbsMinPSampleOp)


# Several neighbours become the op that a program calls for all of them, so that a pipeline draws its tokens: probabilities rounded
# between two steps moved a draw in 1 of 989 rows of 32000.
DEFAULT_FUSION_RULES = [
    FusionRule((TemperatureOp, SoftmaxOp), _always, build_temperature_softmax, 120),
    FusionRule((SoftmaxOp, ProbsTopKOp, TopPOp, ProbsSampleOp), joint_topk_topp_sampleprobs_guard, _fused(FusedLogitsTopKTopPSampleOp), 110),
    FusionRule((ProbsTopKOp, TopPOp, ProbsSampleOp), joint_topk_topp_sampleprobs_guard, _fused(FusedProbsTopKTopPSampleOp), 100),
    FusionRule((ProbsTopKOp, TopPOp, ProbsSampleOp), _not_joint, _fused(FusedProbsTopKThenTopPSampleOp), 100),
    FusionRule((ProbsTopKOp, ProbsSampleOp), _always, build_topk_sampling, 10),
    FusionRule((TopPOp, ProbsSampleOp), _always, build_topp_sampling, 10),
    FusionRule((MinPOp, ProbsSampleOp), _always, build_minp_sampling, 10),
]


def _check_kinds(ops):
    for i in range(1, len(ops)):
        if ops[i].IN is not ops[i - 1].OUT:
            raise CompileError(f"Type mismatch at operator {i} ({type(ops[i]).__name__}): it takes {ops[i].IN}, but {ops[i - 1].OUT} "
                               "comes before it")


def single_softmax_rule(ops):
    """CompileError for two softmaxes."""
    if sum(isinstance(op, (SoftmaxOp, FusedTemperatureSoftmaxOp)) for op in ops) > 1:
        raise CompileError("Multiple Softmax operators found. Only one Softmax is allowed per pipeline.")


def indices_terminal_rule(ops):
    """CompileError for an operator behind one that gives indices."""
    for i, op in enumerate(ops[:-1]):
        if op.OUT is TensorType.INDICES:
            raise CompileError(f"No operator may follow one that outputs Indices. Found {type(ops[i + 1]).__name__} after {type(op).__name__}, which does")


def get_default_fusion_rules():
    """The rules of `compile_pipeline`, in a list of the caller's own."""
    return list(DEFAULT_FUSION_RULES)


def get_default_validity_checks():
    return [single_softmax_rule, indices_terminal_rule]


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


class Compiler:
    """Rules and checks, and `compile(ops)`, which applies them. Rules that are registered come after the default ones of the same `prio`."""

    def __init__(self):
        self.fusion_rules, self.validity_checks = get_default_fusion_rules(), get_default_validity_checks()

    def register_fusion_rule(self, rule):
        self.fusion_rules.append(rule)

    def register_validity_check(self, check):
        self.validity_checks.append(check)

    def compile(self, ops):
        """Checks operators against each other and fuses neighbours. CompileError: they do not fit, or what a check raises."""
        if not ops:
            raise CompileError("Cannot compile empty operator list")
        _check_kinds(ops)
        for check in self.validity_checks:
            check(ops)
        return _fuse(ops, self.fusion_rules)


def compile_pipeline(ops, custom_fusion_rules=None, custom_validity_checks=None):
    """`Compiler.compile` with more rules and checks."""
    compiler = Compiler()
    compiler.fusion_rules += custom_fusion_rules or ()
    compiler.validity_checks += custom_validity_checks or ()
    return compiler.compile(ops)


def infer_initial_type(processors):
    """What the first processor takes; logits when there is none. LegalizationError where it takes logits and probabilities."""
    if not processors:
        return TensorType.LOGITS
    first, takes = processors[0], []
    for kind in (TensorType.LOGITS, TensorType.PROBS):
        try:
            first.legalize(kind)
            takes.append(kind)
        except Exception:  # a processor may refuse in its own way
            continue
    if len(takes) > 1:
        raise LegalizationError(f"Cannot infer input type: {type(first).__name__} can accept both LOGITS and PROBS. Please specify input_type explicitly when "
                                "creating the LogitsPipe")
    return takes[0] if takes else TensorType.LOGITS


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
            self._initial_type = input_type or infer_initial_type(self.processors)
            self.ops = legalize_processors(self.processors, self._initial_type)
        except LegalizationError as error:
            raise ValueError(f"Pipeline creation failed: {error}") from error
        if compile:
            self.compile(custom_fusion_rules, custom_validity_checks)

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
