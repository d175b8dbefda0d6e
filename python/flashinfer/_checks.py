# SPDX-License-Identifier: Apache-2.0
"""Whether results are those of a reference, to what their element type allows."""

_TOLERANCES = {"float64": 1e-7, "float32": 1e-5, "float16": 1e-3, "bfloat16": 1e-2, "float4_e2m1fn_x2": 1.0}


def default_tolerances(dtype):
    """(rtol, atol) for results of an element type: 0 of integers."""
    name = str(dtype).removeprefix("torch.")
    tolerance = 0.1 if name.startswith("float8") else _TOLERANCES.get(name, 0.0)
    return tolerance, tolerance


def _tensors_agree(expected, actual, rtol, atol, max_mismatch_pct, min_cos_sim):
    import torch

    if expected.shape != actual.shape:
        return False
    if expected.numel() == 0:
        return True
    exact = not expected.is_floating_point() and not actual.is_floating_point()
    if exact:
        wrong = expected != actual
    else:
        bounds = [max(pair) for pair in zip(default_tolerances(expected.dtype), default_tolerances(actual.dtype))]
        expected, actual = expected.double(), actual.double()
        wrong = ~torch.isclose(actual, expected, rtol=bounds[0] if rtol is None else rtol, atol=bounds[1] if atol is None else atol)
    if 100 * wrong.double().mean().item() > max_mismatch_pct:
        return False
    finite = exact or bool(expected.isfinite().all() and actual.isfinite().all())
    if exact or min_cos_sim is None or not finite or torch.equal(expected, actual):
        return True
    return torch.nn.functional.cosine_similarity(expected.flatten(), actual.flatten(), dim=0).item() >= min_cos_sim


def default_check(reference_outputs, actual_outputs, *, rtol=None, atol=None, max_mismatch_pct=0.0, min_cos_sim=0.999):
    """Whether `actual_outputs` are `reference_outputs`: tensors, or lists, tuples and dictionaries of them; other values are equal.

    Args:
        rtol, atol: of elements; None: the larger `default_tolerances` of the two element types. Integers are equal
        max_mismatch_pct: how many percent of a tensor's elements may be beyond
        min_cos_sim: the least cosine between two tensors that are not equal; None: any
    """
    import torch

    options = {"rtol": rtol, "atol": atol, "max_mismatch_pct": max_mismatch_pct, "min_cos_sim": min_cos_sim}
    if isinstance(reference_outputs, dict) and isinstance(actual_outputs, dict):
        return reference_outputs.keys() == actual_outputs.keys() and all(
            default_check(reference_outputs[k], actual_outputs[k], **options) for k in reference_outputs)
    many = [isinstance(x, (list, tuple)) for x in (reference_outputs, actual_outputs)]
    if any(many):
        expected, actual = (list(x) if is_many else [x] for x, is_many in zip((reference_outputs, actual_outputs), many))
        return len(expected) == len(actual) and all(default_check(a, b, **options) for a, b in zip(expected, actual))
    if isinstance(reference_outputs, torch.Tensor) and isinstance(actual_outputs, torch.Tensor):
        return _tensors_agree(reference_outputs, actual_outputs, **options)
    if isinstance(reference_outputs, torch.Tensor) or isinstance(actual_outputs, torch.Tensor):
        return False
    return reference_outputs == actual_outputs


def standard_check(reference_outputs, actual_outputs, *, rtol=None, atol=None, max_mismatch_pct=0.0, min_cos_sim=0.999):
    """`default_check`."""
    return default_check(reference_outputs, actual_outputs, rtol=rtol, atol=atol, max_mismatch_pct=max_mismatch_pct, min_cos_sim=min_cos_sim)
