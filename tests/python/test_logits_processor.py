# SPDX-License-Identifier: Apache-2.0
"""Pipelines against the ops they are made of, their rules and errors."""
import numpy as np
import pytest
import torch

import flashinfer
from flashinfer.logits_processor import (CompileError, FusionRule, LegalizationError, LogitsPipe, LogitsProcessor, MinP, Op, Sample,
                                         Softmax, SoftmaxOp, TaggedTensor, Temperature, TensorType, TopK, TopP, compile_pipeline,
                                         legalize_processors)

LOGITS = torch.from_numpy(np.random.default_rng(4).normal(0, 2, (6, 300)).astype(np.float32))
SEED = {"seed": 5, "offset": 8}


@pytest.mark.parametrize("processors, compiled, parameters", [
    ([Temperature(), Softmax(), TopK(), TopP(), Sample()], "FusedTemperatureSoftmaxOp -> FusedProbsTopKThenTopPSampleOp",
     {"temperature": 0.7, "top_k": 40, "top_p": 0.9}),
    ([Temperature(), Softmax(), TopK(joint_topk_topp=True), TopP(), Sample()],
     "FusedTemperatureSoftmaxOp -> FusedProbsTopKTopPSampleOp", {"temperature": 0.7, "top_k": 40, "top_p": 0.9}),
    ([Softmax(), TopK(), Sample()], "SoftmaxOp -> FusedProbsTopKSampleOp", {"top_k": 7}),
    ([Softmax(), MinP(), Sample()], "SoftmaxOp -> FusedProbsMinPSampleOp", {"min_p": 0.2}),
    ([Softmax(), TopP(), MinP(), Sample()], "SoftmaxOp -> TopPOp -> FusedProbsMinPSampleOp", {"top_p": 0.9, "min_p": 0.2}),
    ([Temperature(), TopK(), Sample()], "TemperatureOp -> LogitsTopKOp -> LogitsSampleOp", {"temperature": 0.7, "top_k": 7})])
def test_fusion(processors, compiled, parameters):
    pipe = LogitsPipe(processors)
    assert repr(pipe).endswith(f"compiled_ops=[{compiled}])")
    ids = pipe(LOGITS, **parameters, **SEED)
    assert ids.dtype == torch.int32 and ids.shape == (6,)
    plain = LogitsPipe(processors, compile=False)  # draws differ, what may be drawn does not
    assert plain.compiled_ops == [] and plain(LOGITS, **parameters, **SEED).shape == (6,)


def test_values_are_those_of_the_ops():
    temperature = torch.tensor([0.5, 1, 2, 0.1, 3, 1.5])
    assert torch.equal(LogitsPipe([Temperature()])(LOGITS, temperature=temperature), LOGITS / temperature[:, None])
    probs = LogitsPipe([Temperature(), Softmax()])(LOGITS, temperature=temperature)
    assert torch.equal(probs, flashinfer.softmax(LOGITS, temperature=temperature))
    assert torch.equal(LogitsPipe([TopP()])(probs, top_p=0.5), flashinfer.top_p_renorm_probs(probs, 0.5))
    assert torch.equal(LogitsPipe([TopK()], input_type=TensorType.LOGITS)(LOGITS, top_k=5), flashinfer.top_k_mask_logits(LOGITS, 5))
    kept = LogitsPipe([MinP()])(torch.tensor([[.1, .2, .3, .4], [.7, .1, .1, .1]]), min_p=torch.tensor([0.6, 0.1]))
    torch.testing.assert_close(kept, torch.tensor([[0, 0, 3 / 7, 4 / 7], [.7, .1, .1, .1]]))
    sampled = LogitsPipe([Softmax(), TopP(), Sample()])(LOGITS, top_p=0.5, indices=torch.tensor([2, 2, 0]), **SEED)
    assert torch.equal(sampled, flashinfer.top_p_sampling_from_probs(flashinfer.softmax(LOGITS), 0.5,
                                                                     indices=torch.tensor([2, 2, 0]), **SEED))
    assert LogitsPipe([Temperature(temperature=0.5)])(LOGITS)[0, 0] == LOGITS[0, 0] * 2, "a parameter of the processor is a default"
    assert LogitsPipe([Temperature()])(LOGITS.bfloat16(), temperature=0.3).dtype == torch.bfloat16
    assert isinstance(LogitsPipe([Softmax(), MinP()])(LOGITS.numpy(), min_p=0.1), np.ndarray)


def test_a_pipeline_draws_what_the_direct_functions_draw():
    """In every row. Probabilities that are rounded between two steps move a draw in one of these rows."""
    draw = {"seed": 3, "offset": 4}
    x = torch.from_numpy(np.random.default_rng(5).normal(0, 1, (989, 4000)).astype(np.float32))
    probs = torch.from_numpy(np.random.default_rng(3).random((989, 8000), dtype=np.float32))
    probs /= probs.sum(-1, keepdim=True)
    for joint, order in ((False, "top_k_first"), (True, "joint")):
        tail = [TopK(joint_topk_topp=joint), TopP(), Sample()]
        for k, p in ((4000, 0.1), (4000, 0.9)):
            assert torch.equal(LogitsPipe(tail, input_type=TensorType.PROBS)(probs, top_k=k, top_p=p, **draw),
                               flashinfer.top_k_top_p_sampling_from_probs(probs, k, p, filter_apply_order=order, **draw))
    k, p = 400, 0.5
    assert torch.equal(LogitsPipe([Softmax(), *tail])(x, top_k=k, top_p=p, **draw),
                       flashinfer.top_k_top_p_sampling_from_logits(x, k, p, filter_apply_order="joint", **draw))
    masked = LogitsPipe([TopK()], input_type=TensorType.LOGITS)(x, top_k=k)
    assert torch.equal(LogitsPipe([Softmax(), TopP(), Sample()])(masked, top_p=p, **draw),
                       flashinfer.top_k_top_p_sampling_from_logits(x, k, p, filter_apply_order="top_k_first", **draw))


def test_is_deterministic_reaches_the_ops():
    probs = flashinfer.softmax(LOGITS)
    assert torch.equal(LogitsPipe([TopP()])(probs, top_p=0.5, is_deterministic=True), flashinfer.top_p_renorm_probs(probs, 0.5, is_deterministic=True))
    assert torch.equal(LogitsPipe([TopK(is_deterministic=True)], input_type=TensorType.PROBS)(probs, top_k=5),
                       flashinfer.top_k_renorm_probs(probs, 5, is_deterministic=True))
    assert LogitsPipe([Softmax(), TopP(), Sample()])(LOGITS, top_p=0.5, is_deterministic=True, **SEED).shape == (6,)


@pytest.mark.parametrize("make, text", [
    (lambda: LogitsPipe([]), "Pipeline cannot be empty"),
    (lambda: LogitsPipe([TopK(), Sample()]), "Cannot infer input type: TopK"),
    (lambda: LogitsPipe([Softmax(), Softmax()]), "processor 1 (Softmax): Softmax can only be applied to LOGITS, got PROBS"),
    (lambda: LogitsPipe([TopP()], input_type=TensorType.LOGITS), "TopP can only be applied to PROBS, got LOGITS"),
    (lambda: LogitsPipe([Temperature(), 3]), "processor 1 (int)"),
    (lambda: LogitsPipe([Softmax(), Sample(), TopK()]), "got INDICES"),
    (lambda: LogitsPipe([Temperature()])(LOGITS), "operator 0 (TemperatureOp): Required parameter 'temperature' not provided"),
    (lambda: LogitsPipe([Temperature()])(LOGITS, temperature=-1.0), "Temperature must be positive float"),
    (lambda: LogitsPipe([Temperature()])(LOGITS, temperature=torch.ones(5)), "batch size mismatch"),
    (lambda: LogitsPipe([Softmax(), TopK()])(LOGITS, top_k=2.5), "operator 1 (ProbsTopKOp): top_k must be a positive integer"),
    (lambda: LogitsPipe([Softmax(), TopP()])(LOGITS, top_p=1.5), "top_p must be float in (0, 1]"),
    (lambda: LogitsPipe([Softmax(), MinP()])(LOGITS, min_p=0.0), "min_p must be float in (0, 1]"),
    (lambda: LogitsPipe([Softmax()])(TaggedTensor.probs(LOGITS)), "SoftmaxOp cannot accept input type PROBS. Expected: LOGITS")])
def test_errors(make, text):
    with pytest.raises(ValueError) as caught:
        make()
    assert text in str(caught.value)


@pytest.mark.parametrize("make, text", [
    (lambda: LogitsPipe([Temperature(), Softmax()])(LOGITS, temprature=0.5), "unexpected keyword argument 'temprature'; its operators take temperature"),
    (lambda: LogitsPipe([Softmax(), TopP()])(LOGITS, top_p=0.5, top_k=3), "unexpected keyword argument 'top_k'"),
    (lambda: Sample(determinstic=False), "Sample got an unexpected keyword argument 'determinstic'; it takes indices, deterministic")])
def test_unknown_names(make, text):
    with pytest.raises(TypeError) as caught:
        make()
    assert text in str(caught.value)


def test_rules_and_checks_of_the_users():
    class Cut(Op):
        IN = OUT = TensorType.PROBS

        def __call__(self, tensor, **kwargs):
            self._validate_input_type(tensor)
            return TaggedTensor(tensor.data * 0, self.OUT)

    class Cutting(LogitsProcessor):
        def legalize(self, input_type):
            return [Cut()]

    assert LogitsPipe([Softmax(), Cutting()])(LOGITS).abs().max() == 0
    rule = FusionRule((SoftmaxOp, Cut), lambda window: True, lambda window: SoftmaxOp(), 200)
    assert len(LogitsPipe([Softmax(), Cutting()], custom_fusion_rules=[rule]).compiled_ops) == 1

    def never(ops):
        raise CompileError("not today")

    with pytest.raises(ValueError, match="Compilation failed: not today"):
        LogitsPipe([Softmax()], custom_validity_checks=[never])
    with pytest.raises(CompileError, match="Type mismatch at operator 1"):
        compile_pipeline([Cut(), SoftmaxOp()])
    with pytest.raises(CompileError, match="Only one Softmax"):
        Cut.OUT = TensorType.LOGITS
        compile_pipeline([SoftmaxOp(), Cut(), SoftmaxOp()])
    with pytest.raises(CompileError, match="empty"):
        compile_pipeline([])
    with pytest.raises(LegalizationError):
        legalize_processors([Sample()], TensorType.INDICES)


def test_tagged_tensors():
    tagged = TaggedTensor.logits(LOGITS)
    assert tagged.shape == LOGITS.shape and tagged.size(0) == 6 and tagged.dtype is torch.float32
    assert torch.equal(torch.exp(tagged), torch.exp(LOGITS))
    assert str(TensorType.LOGITS) == "LOGITS" and repr(TensorType.PROBS) == "TensorType.PROBS"
    assert "type=LOGITS" in repr(tagged) and repr(TopK(joint_topk_topp=True)) == "TopK(joint_topk_topp=True)"


def test_older_names_and_seeds():
    assert flashinfer.sampling.top_p_renorm_prob is flashinfer.top_p_renorm_probs
    assert flashinfer.sampling.top_k_renorm_prob is flashinfer.top_k_renorm_probs
    assert flashinfer.topk.topk is flashinfer.top_k
    with pytest.raises(AttributeError):
        flashinfer.sampling.no_such_name
    generator = torch.Generator().manual_seed(3)
    first, second = (flashinfer.sampling.get_seed_and_offset(5, generator) for _ in range(2))
    assert first[1] == 8 and first != second
    assert flashinfer.sampling.get_seed_and_offset(5, generator.manual_seed(3)) == first
    with pytest.raises(ValueError, match="device is cuda"):
        flashinfer.sampling.get_seed_and_offset(5, device="cuda")


def test_the_compiler_and_its_rules():
    from flashinfer.logits_processor.compiler import Compiler, get_default_fusion_rules
    from flashinfer.logits_processor.fusion_rules import build_topp_sampling, joint_topk_topp_sampleprobs_guard
    from flashinfer.logits_processor.legalization import LegalizationError, infer_initial_type
    from flashinfer.logits_processor.operators import ProbsSampleOp, ProbsTopKOp, SoftmaxOp, TemperatureOp, TopPOp
    from flashinfer.logits_processor.processors import Temperature, TopK, TopP
    from flashinfer.logits_processor.types import TensorType
    from flashinfer.logits_processor.validators import CompileError, indices_terminal_rule, single_softmax_rule

    ops = [TemperatureOp(), SoftmaxOp(), TopPOp(), ProbsSampleOp()]
    compiler = Compiler()
    assert [type(op).__name__ for op in compiler.compile(ops)] == ["FusedTemperatureSoftmaxOp", "FusedProbsTopPSampleOp"]
    assert type(build_topp_sampling(ops[2:])).__name__ == "FusedProbsTopPSampleOp" and len(get_default_fusion_rules()) == len(compiler.fusion_rules)
    assert [joint_topk_topp_sampleprobs_guard([op]) for op in (ProbsTopKOp(), ProbsTopKOp(joint_topk_topp=True))] == [False, True]
    with pytest.raises(CompileError, match="Multiple Softmax operators found"):
        single_softmax_rule([SoftmaxOp(), SoftmaxOp()])
    with pytest.raises(CompileError, match="No operator may follow one that outputs Indices. Found SoftmaxOp after ProbsSampleOp"):
        indices_terminal_rule([ProbsSampleOp(), SoftmaxOp()])
    assert [infer_initial_type(p) for p in ([], [Temperature()], [TopP()])] == [TensorType.LOGITS, TensorType.LOGITS, TensorType.PROBS]
    with pytest.raises(LegalizationError, match="TopK can accept both LOGITS and PROBS"):
        infer_initial_type([TopK()])

    def fails(ops):
        raise CompileError("never")

    compiler.register_validity_check(fails)
    with pytest.raises(CompileError, match="never"):
        compiler.compile(ops)
