# SPDX-License-Identifier: Apache-2.0
"""Quantisers to MXFP8, MXFP4 and NVFP4."""
import torch

import flashinfer
from flashinfer import SfLayout
from routines.case import Case, Check, dtype

_LAYOUTS = {"128x4": SfLayout.layout_128x4, "8x4": SfLayout.layout_8x4, "linear": SfLayout.layout_linear}


def _mxfp8(args, x, row):
    swizzled = args.is_sf_swizzled_layout

    def view(outputs):
        values, scales = outputs
        if not values.is_cpu:
            return [values.float(), scales.view(torch.uint8).float()]
        back = flashinfer.mxfp8_dequantize_host(values.view(torch.uint8), scales.view(torch.uint8).flatten(), swizzled)
        return [back[:, :args.k]]

    check = Check(0.5, 0.5, view=view, expected=(lambda: [x.float()]) if x.is_cpu else None)
    return Case(lambda x: flashinfer.mxfp8_quantize(x, swizzled, args.alignment, enable_pdl=args.enable_pdl), (x,), 3 * x.numel(), None,
                {**row, "alignment": args.alignment, "is_sf_swizzled_layout": swizzled}, check)


def _bytes_of(outputs):
    return [t.view(torch.uint8).float() for t in outputs]


def _mxfp4(args, x, row):
    def view(outputs):
        return [flashinfer.e2m1_and_ufp8sf_scale_to_float(outputs[0].view(torch.uint8), outputs[1].view(torch.uint8).flatten(), None, 32, 0,
                                                          True).float().reshape(args.m, args.k)]

    check = Check(0.5, 0.5, view=view, expected=lambda: [x.float()]) if x.is_cpu else Check(0, 0, share=2e-3, view=_bytes_of)
    return Case(lambda x: flashinfer.mxfp4_quantize(x, enable_pdl=args.enable_pdl), (x,), 3 * x.numel(), None, row, check)


def _nvfp4(args, x, row):
    scale = torch.tensor([args.global_scale], dtype=torch.float32, device=x.device)
    layout = _LAYOUTS[args.sf_layout]
    row = {**row, "global_scale": args.global_scale, "sf_layout": args.sf_layout, "do_shuffle": args.do_shuffle,
           "sf_vec_size": args.sf_vec_size}

    def call(x, scale):
        return flashinfer.nvfp4_quantize(x, scale, sfLayout=layout, do_shuffle=args.do_shuffle, sf_vec_size=args.sf_vec_size,
                                         enable_pdl=args.enable_pdl, per_token_activation=args.per_token_activation)

    def view(outputs):
        back = flashinfer.e2m1_and_ufp8sf_scale_to_float(
            outputs[0].view(torch.uint8), outputs[1].view(torch.uint8).flatten(), 1 / scale, args.sf_vec_size, 1,
            args.sf_layout != "linear", args.sf_layout == "8x4")
        return [back.float().reshape(args.m, args.k)]

    round_trip = x.is_cpu and not args.do_shuffle and not args.per_token_activation
    check = Check(0.5, 0.5, view=view, expected=lambda: [x.float()]) if round_trip else Check(0, 0, share=2e-3, view=_bytes_of)
    return Case(call, (x, scale), 3 * x.numel(), None, row, check)


def _batched(args, x, row):
    scale = torch.tensor([args.global_scale], dtype=torch.float32, device=x.device)
    return Case(lambda x, scale: flashinfer.nvfp4_batched_quantize(x, scale, args.sf_vec_size), (x, scale), 3 * x.numel(), None,
                {**row, "global_scale": args.global_scale, "sf_vec_size": args.sf_vec_size}, Check(0, 0, share=2e-3, view=_bytes_of),
                uses_pdl=False)


def make(args, device):
    batched = args.routine == "nvfp4_batched_quantize"
    shape = (args.batch_size or 1, args.m, args.k) if batched else (args.m, args.k)
    x = torch.randn(shape, dtype=dtype(args.input_dtype), device=device)
    row = {"m": args.m, "k": args.k, "input_dtype": x.dtype, "enable_pdl": args.enable_pdl}
    return {"mxfp8_quantize": _mxfp8, "mxfp4_quantize": _mxfp4, "nvfp4_quantize": _nvfp4, "nvfp4_batched_quantize": _batched}[
        args.routine](args, x, row)
