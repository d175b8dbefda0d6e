# SPDX-License-Identifier: Apache-2.0
"""What real torch and safetensors make of our files, and files of theirs for us.

check DIR NAME: DIR holds NAME.pt, NAME.safetensors, NAME.json {key: {dtype, shape, stride, hex}} and NAME.aliases.json, pairs of
keys that share memory; every tensor must load bitwise.
resave DIR NAME: torch must write the loaded dict back with the same pickle and the same entries.
make DIR: writes theirs.pt, theirs.safetensors, theirs.json and a few files that are no dict of tensors.
"""
import json
import os
import sys
import zipfile

import safetensors.torch
import torch


def raw(t):
    c = t.detach().contiguous()
    if c.numel() == 0:
        return ""
    return bytes(c.flatten().view(torch.uint8).tolist()).hex()


def describe(t):
    return {"dtype": str(t.dtype)[len("torch."):], "shape": list(t.shape), "stride": list(t.stride()), "hex": raw(t)}


def compare(name, loaded, manifest, strides):
    if list(loaded) != list(manifest) and strides:
        raise SystemExit(f"{name}: keys {list(loaded)} instead of {list(manifest)}")
    for key, want in manifest.items():
        have = describe(loaded[key])
        if not strides:
            have["stride"] = want["stride"]
        if have != want:
            raise SystemExit(f"{name}: {key} is {have}, but was written as {want}")


def members(path):
    archive = zipfile.ZipFile(path)
    if archive.testzip() is not None:
        raise SystemExit(f"{path}: {archive.testzip()} is damaged")
    stem = os.path.splitext(os.path.basename(path))[0]
    offsets = {}
    for i in archive.infolist():
        if i.compress_type != 0:
            raise SystemExit(f"{i.filename} is compressed")
        archive.fp.seek(i.header_offset + 26)
        n, m = (int.from_bytes(archive.fp.read(2), "little") for _ in range(2))
        offsets[i.filename] = i.header_offset + 30 + n + m
        if offsets[i.filename] % 64 != 0:
            raise SystemExit(f"{i.filename} begins at {offsets[i.filename]}, which is not aligned to 64")
    return archive.read(stem + "/data.pkl"), [i.filename[len(stem):] for i in archive.infolist()]


def check(folder, name):
    manifest = json.load(open(f"{folder}/{name}.json"))
    ours = f"{folder}/{name}.pt"
    for weights_only in (True, False):
        compare("torch.load", torch.load(ours, weights_only=weights_only), manifest, True)
    loaded = torch.load(ours, weights_only=True, mmap=True)
    compare("torch.load with mmap", loaded, manifest, True)
    for a, b in json.load(open(f"{folder}/{name}.aliases.json")):
        if loaded[a].untyped_storage().data_ptr() != loaded[b].untyped_storage().data_ptr():
            raise SystemExit(f"{a} and {b} do not share memory")
    compare("safetensors", safetensors.torch.load_file(f"{folder}/{name}.safetensors"), manifest, False)


def resave(folder, name):
    os.makedirs(folder + "/again", exist_ok=True)
    torch.save(torch.load(f"{folder}/{name}.pt"), f"{folder}/again/{name}.pt")
    if members(f"{folder}/{name}.pt") != members(f"{folder}/again/{name}.pt"):
        raise SystemExit("torch writes another pickle or other entries")


def make(folder):
    g = torch.Generator().manual_seed(7)

    def ints(*shape, dtype=torch.uint8):
        return torch.randint(0, 100, shape, generator=g).to(dtype)

    base = torch.randn(6, 8, generator=g)
    tensors = {"base": base, "transposed": base.t(), "block": base[1:4, 2:7], "row": base[3],
               "expanded": torch.randn(1, 5, generator=g).expand(4, 5), "scalar": torch.tensor(2.5),
               "empty": torch.empty(0, 3), "grad": torch.randn(2, 2, generator=g).requires_grad_(),
               "nan": torch.tensor([float("nan"), float("inf"), -0.0])}
    for name in ("float64 float16 bfloat16 float8_e4m3fn float8_e5m2 uint8 int8 int16 int32 int64 uint16 uint32 uint64 "
                 "bool").split():
        dtype = getattr(torch, name)
        tensors[name] = ints(3, 4).view(torch.uint8).to(torch.bool) if name == "bool" else (
            ints(3, 4 * dtype.itemsize).view(dtype))
    tensors["float4_e2m1fn_x2"] = ints(2, 4).view(torch.float4_e2m1fn_x2)
    torch.save(tensors, folder + "/theirs.pt")
    torch.save(tensors, folder + "/protocol4.pt", pickle_protocol=4)
    safetensors.torch.save_file({k: v.detach().contiguous().clone() for k, v in tensors.items()},
                                folder + "/theirs.safetensors", metadata={"note": "x"})
    json.dump({k: describe(v) for k, v in tensors.items()}, open(folder + "/theirs.json", "w"))
    torch.save([1, -5, 2**40, 1.5, None, True, "text", (1, 2, 3, 4), {"a": [torch.ones(2)]}, torch.bfloat16,
                torch.Size([2, 3]), torch.device("cpu"), -(2**33)], folder + "/values.pt")
    torch.save(torch.nn.Linear(2, 3).state_dict(), folder + "/state_dict.pt")

    class Evil:
        def __reduce__(self):
            return (os.system, ("touch " + folder + "/executed",))

    torch.save({"x": Evil()}, folder + "/evil.pt")
    torch.save({"x": torch.ones(3, dtype=torch.complex64)}, folder + "/complex.pt")
    torch.save({"x": torch.ones(2)}, folder + "/legacy.pt", _use_new_zipfile_serialization=False)


{"check": check, "resave": resave, "make": make}[sys.argv[1]](*sys.argv[2:])
