# SPDX-License-Identifier: Apache-2.0
"""For gpu_check.py: processes with a time limit and what they print; tools; the tree for another machine."""
import glob
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
PLACES = {"compute-sanitizer": ("/usr/local/cuda*/bin/compute-sanitizer", "/usr/local/cuda*/compute-sanitizer/compute-sanitizer",
                                "/opt/nvidia/*/*/compute-sanitizer", "/opt/nvidia/*/*/*/compute-sanitizer"),
          "ncu": ("/usr/local/cuda*/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu"), "nvcc": ("/usr/local/cuda*/bin/nvcc",)}


def find_tool(name):
    return shutil.which(name) or next((p for pattern in PLACES[name] for p in sorted(glob.glob(pattern)) if os.access(p, os.X_OK)), None)


def run_process(argv, timeout, env):
    """(exit status or None when it ran out of time, output)"""
    try:
        child = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                 start_new_session=True)
    except OSError as error:
        return 127, str(error)
    try:
        output = child.communicate(timeout=timeout)[0]
        return child.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        try:
            return None, child.communicate(timeout=15)[0]
        except subprocess.TimeoutExpired as late:  # one that waits in the driver for a kernel that does not end
            return None, (late.output or b"").decode(errors="replace") if isinstance(late.output, bytes) else late.output


def last_json(output):
    """The JSON document at the end of the output, which may begin with other lines."""
    for match in re.finditer(r"^[\[{]", output or "", re.MULTILINE):
        try:
            return json.loads(output[match.start():])
        except ValueError:
            continue
    return None


def tail(output, status=0):
    """What went wrong, in a line; with the exit status of a process that a signal ended."""
    killed = f"exit status {status}; " if status < 0 else ""
    lines = [line.strip() for line in (output or "").splitlines() if line.strip()]
    wrong = [line for line in lines if re.search(r"FAIL|[Ee]rror|threw|========= (?!COMPUTE)", line)]
    return killed + " | ".join((wrong or lines)[:3])[:400]


def needed_libraries(program):
    """Shared objects that the program needs and a plain Linux with a C++ compiler may not have."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    common = re.compile(r"lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so|ld-linux")
    return [pathlib.Path(p) for p in re.findall(r"=> (/\S+)", listed) if not common.search(p)]


def pack(build, target, targets):
    """bin/, lib/ with all third-party code, the headers that kernels are compiled from, kernels for `targets`, and these scripts."""
    build, target = pathlib.Path(build).resolve(), pathlib.Path(target)
    for folder in ("bin", "lib"):
        (target / folder).mkdir(parents=True, exist_ok=True)
    for name in ("flashinfer", "bench_cuda_probe", "bench_gpu_facts"):
        program = build / "bin" / name
        shutil.copy(program, target / "bin" / name)
        for library in needed_libraries(program):
            shutil.copy(library.resolve(), target / "lib" / library.name)
    headers = target.resolve() / "share" / "flashinfer" / "include"
    subprocess.run(["cmake", f"-DSOURCE={HERE.parent}", f"-DKERNELS={headers}", "-P", str(HERE.parent / "cmake" / "install_headers.cmake")],
                   check=True, stdout=subprocess.DEVNULL)
    (headers / "bench").mkdir(exist_ok=True)
    for header in HERE.parent.glob("bench/gpu_facts*.*h"):
        shutil.copy2(header, headers / "bench" / header.name)
    if targets:
        subprocess.run([target / "bin" / "flashinfer", "aot", "--all", "--targets", targets, "--out", target / "aot", "--quiet"], check=True,
                       env=dict(os.environ, LD_LIBRARY_PATH=f"{target}/lib"))
    for script in (*HERE.glob("gpu_check*"), HERE.parent / "bench" / "gpu_torch.py"):
        shutil.copy(script, target / script.name)
    size = sum(p.stat().st_size for p in target.rglob("*") if p.is_file())
    print(f"{target}: {size / 1e6:.1f} MB; on the machine with the GPU: {target.name}/gpu_check.sh")
