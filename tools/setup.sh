#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/setup.sh build|demo|wheel|cubin-wheel|test|ci|lint: installs what is missing for that, and nothing else. Distribution packages with apt when it
# is run as root or sudo needs no password (else it prints the command and stops), Python packages into .venv. Fast when all is there.
set -eu
cd "$(dirname "$0")/.."
mode=${1:-build}

# ccache from the first command on: installed later it would change each compile line, and all objects would be built again.
packages="g++ cmake ninja-build ccache pkg-config nlohmann-json3-dev libcli11-dev libxxhash-dev libdeflate-dev libpcre2-dev"
# Where the distribution has them and they can be installed: charts in reports, a browser that the test of the pages runs, and mpirun, under
# which tests/comm runs.
optional="libjs-chart.js"
python_packages=""
oracle=""
format="clang-format==19.1.7"
case $mode in
  build) ;;
  demo) packages="$packages python3 python3-venv" ;;
  wheel)
    packages="$packages python3 python3-venv python3-dev"
    python_packages="apache-tvm-ffi click scikit-build-core"
    ;;
  cubin-wheel)
    packages="$packages python3 python3-venv"
    python_packages="nvidia-cuda-nvrtc"
    ;;
  test | ci)
    packages="$packages git python3 python3-venv python3-dev libgtest-dev libbenchmark-dev"
    python_packages="torch==2.13.0 numpy safetensors apache-tvm-ffi nvidia-cuda-nvrtc nvidia-cuda-nvdisasm
                     nvidia-ml-py einops tqdm tabulate requests click packaging pytest scikit-build-core
                     transformers==5.22.2 kernels==0.17.2 psutil $format"
    oracle="flashinfer-python==0.7.2.post1"
    optional="$optional chromium-headless-shell openmpi-bin"
    [ "$mode" = ci ] && packages="$packages clang-19 libclang-rt-19-dev"
    ;;
  lint)
    packages="$packages git python3 python3-venv clang-tidy-19 libgtest-dev"
    python_packages="$format"
    ;;
  *)
    echo "usage: tools/setup.sh build|demo|wheel|cubin-wheel|test|ci|lint" >&2
    exit 2
    ;;
esac

# ---- distribution packages ----
missing_of() {
  status=" $(dpkg-query -W -f='${binary:Package}/${db:Status-Status} ' "$@" 2>/dev/null || true)"
  for p in "$@"; do
    case $status in *" $p/installed "* | *" $p:"*"/installed "*) ;; *) printf ' %s' "$p" ;; esac
  done
}
apt_install() {
  $apt install -y --no-install-recommends "$@" >"$install_log" 2>&1 && return
  echo "setup: updating the package lists"
  $apt update >/dev/null
  $apt install -y --no-install-recommends "$@" >"$install_log" 2>&1
}
missing=""
more=""
if command -v dpkg-query >/dev/null; then
  missing=$(missing_of $packages)
  more=$(missing_of $optional)
else
  for tool in c++ cmake ninja pkg-config python3; do
    command -v $tool >/dev/null || { echo "setup: $tool is missing; this script installs packages on Debian and Ubuntu only" >&2; exit 1; }
  done
fi
as_root="none"
if [ "$(id -u)" = 0 ]; then
  as_root=""
elif [ -n "$missing$more" ] && command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  as_root="sudo"
fi
if [ -n "$missing" ] && [ "$as_root" = none ]; then
  echo "setup: these packages are missing; install them and run this again:" >&2
  echo "  apt-get install -y --no-install-recommends$missing" >&2
  exit 1
fi
apt="$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0"
install_log=$(mktemp)
if [ -n "$missing" ]; then
  echo "setup: installing with apt:$missing"
  apt_install $missing || { cat "$install_log" >&2; exit 1; }
fi
if [ -n "$more" ] && [ "$as_root" = none ]; then
  echo "setup: what needs these packages is left out, as installing them needs root:$more" >&2
  more=""
fi
for p in $more; do
  apt-cache show "$p" >/dev/null 2>&1 || continue  # Ubuntu has no package of this browser
  echo "setup: installing with apt: $p"
  apt_install "$p" || echo "setup: $p cannot be installed; what needs it is left out" >&2
done
rm -f "$install_log"

# ---- Python packages ----
[ "$mode" = build ] && exit 0
if ! [ -x .venv/bin/python ]; then
  echo "setup: making .venv"
  python3 -m venv .venv
fi
[ -n "$python_packages" ] || exit 0
stamp=.venv/.installed-$(printf '%s' "$python_packages $oracle" | cksum | cut -d' ' -f1)
if ! [ -e "$stamp" ]; then
  echo "setup: installing Python packages into .venv${oracle:+ (PyTorch and the compatibility oracle: some minutes the first time)}"
  .venv/bin/python -m pip install -q --disable-pip-version-check $python_packages
  # Without its dependencies, which need CUDA: it is only imported, and its log and recorder are compared.
  [ -z "$oracle" ] || .venv/bin/python -m pip install -q --disable-pip-version-check --no-deps $oracle
  touch "$stamp"
fi
