#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/wheel_tag.py WHEEL --out DIR: copies a wheel to DIR under the platform tag that holds for it: the first manylinux tag whose symbol
versions (PEP 600, auditwheel's policies) cover every library and precompiled kernel inside, from manylinux_2_28 on; else linux, with the reason.

`--need manylinux_2_28` and `--limit-mb 40` fail when the wheel does not meet them."""
import argparse
import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

# glibc's minor version, with the libstdc++ that distributions with that glibc have.
POLICIES = [(28, {"GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11)}), (31, {"GLIBCXX": (3, 4, 28), "CXXABI": (1, 3, 12)}),
            (34, {"GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13)}), (35, {"GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13)}),
            (36, {"GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13)})]
EVERYWHERE = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1", "libstdc++.so.6", "ld-linux-x86-64.so.2"}
BROUGHT = {"libtvm_ffi.so"}  # by a package that the wheel requires


def needs(files):
    """({"GLIBC": {(2, 14): a file}, ...}, {library: a file}) of ELF files: what they need of the system."""
    versions, libraries = {}, {}
    text = subprocess.run(["readelf", "-W", "-d", "-V", *map(str, files)], capture_output=True, text=True, check=True).stdout
    name, in_needs = str(files[0]), False
    for line in text.splitlines():
        if line.startswith("File: "):
            name = line[6:]
        if line.startswith("Version "):
            in_needs = line.startswith("Version needs section")
        if found := re.search(r"\(NEEDED\).*\[(.*)\]", line):
            libraries.setdefault(found[1], name)
        if in_needs and (found := re.search(r"Name: (GLIBC|GLIBCXX|CXXABI)_([0-9.]+)\s", line)):
            versions.setdefault(found[1], {}).setdefault(tuple(map(int, found[2].split("."))), name)
    return versions, libraries


def tag_of(folder):
    """(tag, what is against an older one) for the unpacked wheel."""
    files = sorted(p for p in folder.rglob("*.so*") if p.is_file())
    versions, libraries = needs(files)
    inside = {p.name for p in files}
    strange = sorted(set(libraries) - EVERYWHERE - BROUGHT - inside)
    if strange:
        return "linux_x86_64", [f"{pathlib.Path(libraries[n]).name} needs {n}, which is neither in the wheel nor on every system" for n in strange]
    against = []
    for minor, limits in POLICIES:
        reasons = [f"{pathlib.Path(name).relative_to(folder)} needs {kind}_{'.'.join(map(str, version))}"
                   for kind, limit in {"GLIBC": (2, minor), **limits}.items()
                   for version, name in versions.get(kind, {}).items() if version > limit]
        if not reasons:
            return f"manylinux_2_{minor}_x86_64", against
        against = against or reasons
    return "linux_x86_64", against


def retagged(wheel, tag, out):
    """The wheel under another platform tag: its name, the Tag of WHEEL, and the digest of that file in RECORD."""
    old = re.search(r"-([^-]+)\.whl$", wheel.name)[1]
    path = out / wheel.name.replace(f"-{old}.whl", f"-{tag}.whl")
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        infos = source.infolist()
        meta = next(i.filename for i in infos if i.filename.endswith(".dist-info/WHEEL"))
        text = source.read(meta).replace(f"-{old}\n".encode(), f"-{tag}\n".encode())
        digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
        for info in infos:
            data = source.read(info)
            if info.filename == meta:
                data = text
            elif info.filename.endswith(".dist-info/RECORD"):
                lines = data.decode().splitlines(keepends=True)
                data = "".join(f"{meta},sha256={digest},{len(text)}\n" if line.startswith(meta + ",") else line for line in lines).encode()
            target.writestr(info, data, zipfile.ZIP_DEFLATED)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--need", help="a tag, without the architecture: an error when the wheel's is newer")
    parser.add_argument("--limit-mb", type=float, help="an error when the wheel is larger")
    o = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(o.wheel).extractall(folder)
        tag, against = tag_of(pathlib.Path(folder))
    if o.need and tag != f"{o.need}_x86_64":
        sys.exit(f"{o.wheel.name} is {tag}, not {o.need}: " + "; ".join(against))
    megabytes = o.wheel.stat().st_size / 1e6
    if o.limit_mb and megabytes > o.limit_mb:
        sys.exit(f"{o.wheel.name} has {megabytes:.1f} MB, more than {o.limit_mb}")
    o.out.mkdir(parents=True, exist_ok=True)
    path = retagged(o.wheel, tag, o.out)
    print(f"{path}: {megabytes:.1f} MB" + "".join(f"\n  {reason}" for reason in against[:5]))


if __name__ == "__main__":
    main()
