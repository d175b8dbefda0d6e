# SPDX-License-Identifier: Apache-2.0
# make demo   a language model on this library: builds, downloads, serves, records, replays; DEVICE=cuda: on a GPU
# make test   builds and runs all tests; FLASHINFER_CUDA_ARCH_LIST="7.5 8.9": compiles the GPU kernels for these
# make bench  the benchmark programs
# make install PREFIX=/usr/local   the library, its headers, the command and precompiled kernels
# make wheel  dist/*.whl: the Python package with precompiled kernels, for machines without a compiler too
# make asan   all tests under AddressSanitizer and UndefinedBehaviorSanitizer;  make tsan  the threaded parts under ThreadSanitizer
BUILD := build/release
PREFIX ?= /usr/local
JOBS ?= $(shell nproc 2>/dev/null || echo 2)

.PHONY: all demo test bench asan tsan install wheel clean
all:
	@tools/setup.sh build
	@cmake --preset release >/dev/null
	cmake --build $(BUILD) -j $(JOBS)

demo:
	@tools/setup.sh demo
	@cmake --preset release >/dev/null
	cmake --build $(BUILD) -j $(JOBS) --target flashinfer_cli example_llm
	@tools/demo.sh

test:
	@tools/setup.sh test
	@cmake --preset release >/dev/null
	cmake --build $(BUILD) -j $(JOBS)
	@tools/test.sh $(BUILD)

bench:
	@tools/setup.sh test
	@cmake --preset release >/dev/null
	cmake --build $(BUILD) -j $(JOBS) --target flashinfer_cli benches
	@for program in $(BUILD)/bin/bench_*; do echo "== $$program"; $$program || exit 1; done

asan tsan:
	@tools/setup.sh test
	@cmake --preset $@ >/dev/null
	cmake --build build/$@ -j $(JOBS)
	@tools/test.sh build/$@

install: all
	cmake --build $(BUILD) --target aot
	cmake --install $(BUILD) --prefix $(PREFIX)

wheel:
	@tools/setup.sh wheel
	@cmake --preset release >/dev/null
	cmake --build $(BUILD) -j $(JOBS) --target python_package
	.venv/bin/python -m pip wheel . --no-deps --no-build-isolation -w dist -C cmake.define.FLASHINFER_PREBUILT=$(abspath $(BUILD))

clean:
	rm -rf build dist
