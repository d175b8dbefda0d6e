# SPDX-License-Identifier: Apache-2.0
# make demo   a language model on this library: builds, downloads, serves, records, replays; DEVICE=cuda: on a GPU,
#             NP=2: with two processes that share the model
# make test   builds and runs all tests; FLASHINFER_CUDA_ARCH_LIST="7.5 8.9": compiles the GPU kernels for these
# make bench  rows of case tables beside other libraries, and the benchmark programs, into docs/performance.md;  make bench-compare BASE=main OPS="rmsnorm mm_bf16": this checkout's times over a commit's, in turns
# make install PREFIX=/usr/local   the library, its headers, the command and precompiled kernels
# make packages  dist/*.deb: libflashinfer and libflashinfer-dev, tried against the C example; the Rust crate, the recipes, and vllm-check;  VLLM=0: without that
# make vllm-check  vLLM with and without integrations/vllm: equal tokens, and a short run of both (3 GB in .venv-vllm; docs/integrations.md);  ROUNDS=3: times in as many turns
# make wheel  dist/*.whl: the Python package with precompiled kernels, for machines without a compiler too; and flashinfer-cpp-compat (docs/python.md)
# make cubin-wheel TARGETS="sm_90a"   dist/flashinfer_cpp_cubin-*.whl: GPU kernels, compiled by NVRTC, for machines that compile none (packaging/cubin);  OPS="rmsnorm": of these ops
# make dist   dist/flashinfer-cpp-VERSION.tar.gz: the sources of HEAD, which build without git and network
# make format formats C and C++;  make format-check lists what is not formatted;  make lint  clang-tidy, FILES="flashinfer/core/fs.cc": on these
# make isa    all case rows for AVX2 and for portable code, kernels at -O1 (make test and CI run them for AVX2 where the CPU has AVX-512)
# make nvrtc-versions   all GPU kernels with NVRTC 12.4, 12.6, 12.9, 13.0 and the newest, a spill fails; VERSIONS="12.4": these
# make nccl-versions   looks into the newest libnccl for CUDA 12 and 13 for the names that the library calls; VERSIONS="nvidia-nccl-cu12==2.18.3": these
# make asan   all tests under AddressSanitizer and UndefinedBehaviorSanitizer;  make tsan  the threaded parts under ThreadSanitizer
BUILD := build/release
PREFIX ?= /usr/local
VERSION = $(shell cat version.txt)
JOBS ?= $(shell nproc 2>/dev/null || echo 2)

.PHONY: all demo test bench bench-compare asan tsan tsan-build isa nvrtc-versions nccl-versions format format-check lint install packages vllm-check dist wheel cubin-wheel clean
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
	cmake --build $(BUILD) -j $(JOBS) --target flashinfer_cli flashinfer_tvm_ffi example_llm benches
	@tools/bench.sh $(BUILD)

bench-compare:
	@test -n "$(BASE)" || { echo 'bench-compare: BASE is missing: make bench-compare BASE=main'; exit 2; }
	@tools/setup.sh build
	@cmake --preset release >/dev/null
	cmake --build $(BUILD) -j $(JOBS) --target flashinfer_cli
	@python3 tools/bench_compare.py $(BASE) $(if $(OPS),--ops $(OPS))

asan:
	@tools/setup.sh test
	@cmake --preset asan >/dev/null
	cmake --build build/asan -j $(JOBS)
	@tools/test.sh build/asan

# The preset builds few op families. ThreadSanitizer cannot follow threads that a forked child starts, has a once of its own that
# knows nothing of fork, does not take its own locks there (a child of a busy process waits for ever), calls a thread that a child did not inherit leaked, and cannot follow memory across the subprocesses of the CLI's test.
tsan-build:
	@tools/setup.sh test
	@cmake --preset tsan >/dev/null
	cmake --build build/tsan -j $(JOBS) --target core_tests jit_tests record_tests

tsan: tsan-build
	@GTEST_FILTER='-*TwoProcessesAndTheirThreads*:*ThreadsOfAForkedChild*:Fork.AChildMakes*:Fork.WaitsForMutexesThatJoin*:Warmup*:*AChildForkedWhileLinesAreDropped*' tools/test.sh build/tsan -R '^(core|jit|record)$$'

isa:
	@tools/setup.sh test
	@cmake --preset release >/dev/null
	cmake --build $(BUILD) -j $(JOBS) --target flashinfer_cli
	@failed=0; for isa in x86-64-v3 portable; do echo "== $$isa"; \
	  FLASHINFER_WORKSPACE_BASE=$(abspath $(BUILD))/jit-cache FLASHINFER_CPU_ISA=$$isa FLASHINFER_EXTRA_CFLAGS=-O1 $(BUILD)/bin/flashinfer cases \
	    >$(BUILD)/cases-$$isa.txt || failed=1; grep -v '^ok ' $(BUILD)/cases-$$isa.txt; done; exit $$failed

nvrtc-versions:
	@tools/setup.sh test
	@cmake --preset release >/dev/null
	cmake --build $(BUILD) -j $(JOBS) --target device_tests emu_tests
	@tools/nvrtc_versions.py --build $(BUILD) $(VERSIONS)

nccl-versions:
	@tools/setup.sh test
	@cmake --preset release >/dev/null
	cmake --build $(BUILD) -j $(JOBS) --target comm_tests
	@tools/nccl_versions.py --build $(BUILD) $(VERSIONS)

format:
	@tools/setup.sh lint
	@tools/format.sh

format-check:
	@tools/setup.sh lint
	@tools/format.sh --check

lint:
	@tools/setup.sh lint
	@cmake --preset release >/dev/null
	@tools/lint.sh $(FILES)

install: all
	cmake --build $(BUILD) --target aot
	cmake --install $(BUILD) --prefix $(PREFIX)

packages: all
	cd $(BUILD) && cpack -G DEB -B $(abspath dist)
	FLASHINFER_BUILD_DIR=$(abspath $(BUILD)) python3 tests/install/install_test.py Packages
	$(if $(filter 0,$(VLLM)),,@$(MAKE) --no-print-directory vllm-check)

vllm-check: all
	@tools/vllm_check.sh $(if $(ROUNDS),--rounds $(ROUNDS),--rounds 1 --tokens 8 --long-prompts 2)

dist:
	@mkdir -p dist
	git archive --prefix=flashinfer-cpp-$(VERSION)/ -o dist/flashinfer-cpp-$(VERSION).tar.gz HEAD

wheel:
	@tools/setup.sh wheel
	@cmake --preset release >/dev/null
	cmake --build $(BUILD) -j $(JOBS) --target python_package
	.venv/bin/python -m pip wheel . --no-deps --no-build-isolation -w $(BUILD)/dist -C cmake.define.FLASHINFER_PREBUILT=$(abspath $(BUILD))
	.venv/bin/python tools/wheel_tag.py $(BUILD)/dist/flashinfer_cpp-*-linux_x86_64.whl --out dist --limit-mb 40
	.venv/bin/python tools/try_wheel.py dist/flashinfer_cpp-*.whl
	.venv/bin/python -m pip wheel packaging/compat --no-deps --no-build-isolation -w dist -C for=other-environments

cubin-wheel:
	@test -n "$(TARGETS)" || { echo 'cubin-wheel: TARGETS is missing: make cubin-wheel TARGETS="sm_80 sm_90a"'; exit 2; }
	@tools/setup.sh cubin-wheel
	@cmake --preset release >/dev/null
	cmake --build $(BUILD) -j $(JOBS) --target flashinfer_cli
	FLASHINFER_BUILD_DIR=$(abspath $(BUILD)) .venv/bin/python -m pip wheel packaging/cubin --no-deps --no-build-isolation -w dist \
	  -C targets="$(TARGETS)" $(if $(OPS),-C op="$(OPS)")
	@ls -l dist/flashinfer_cpp_cubin-$(VERSION)-*.whl | awk '{printf "%s: %.1f MB\n", $$9, $$5 / 1e6}'

clean:
	rm -rf build dist
