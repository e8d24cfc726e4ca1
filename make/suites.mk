# Suites that take minutes to hours or fetch much. `make test` runs a sample of each.

# Triton has hundreds of megabytes, so its tests have an environment of their own.
TRITON := $(CACHE)/triton
$(TRITON)/.installed: python/requirements-triton.txt python/pyproject.toml
	$(PYTHON) -m venv $(TRITON)
	$(TRITON)/bin/python -m pip install --quiet --disable-pip-version-check -r python/requirements-triton.txt
	$(TRITON)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable python
	@touch $@
.PHONY: test-triton
test-triton: build $(TRITON)/.installed  ## Triton's kernels (softmax, matrix products, attention, ...) against numpy, with our driver and with Triton's own: minutes, and a large download
	$(TRITON)/bin/python -m pytest -c python/pyproject.toml --rootdir python python/tests/triton $(ARGS)
	TEGRARM_TEST_TRITON=cuda $(TRITON)/bin/python -m tegrarm run --cuda -- $(TRITON)/bin/python -m pytest -c python/pyproject.toml --rootdir python python/tests/triton/test_triton.py $(ARGS)
	$(TRITON)/bin/python examples/python/triton_softmax.py

# Compares tinygrad's own tests on the TEGRA interface with its CPU device. They take long and are not part of `make test`. They need
# torch, which has gigabytes if its CPU build is not on pip's index, so they have a separate environment. ARGS="--compiler ptx test_ops",
# for example.
test-tinygrad: build $(SUITE)/.installed  ## tinygrad's own test suite: long, not part of `make test`
	$(SUITE)/bin/python python/suite/run.py --cache "$(WHOLE_CACHE)" $(ARGS)
	$(SUITE)/bin/python python/suite/run.py --cache "$(WHOLE_CACHE)" --device tegra $(ARGS)

# Compares the text of both disassemblers for every kernel that the suite's runs have left, for intrinsics.cu, for the cubins in the source
# tree, and for the forms of PTX. ARGS="--every 1" takes all forms.
test-disasm: venv $(SIM)
	$(PY) python/suite/disasm.py --cache "$(WHOLE_CACHE)" --simulator "$(WHOLE_SIM)" $(ARGS)

# Ten million runs of litmus tests: so many of each test with each order of its accesses. It prints the table of
# docs/simulator/judging.md. Accesses of mixed sizes are tried as often as a test. `cargo test` makes a sample.
LITMUS_RUNS ?= 420000
.PHONY: test-litmus test-lookback
test-litmus: ## the memory model of PTX on several host threads: ten million runs of litmus tests
	TEGRARM_TEST_LITMUS=$(LITMUS_RUNS) $(CARGO) test --release --locked -p sm87 --test sm -- litmus --nocapture

test-lookback: build venv  ## CUB's ReduceByKey and InclusiveSum, 10,000 runs of each on all host threads, against numpy
	$(PY) python/suite/lookback.py $(ARGS)

# The kernels of Indigo 1.3 with planted bugs: INDIGO names a checkout of HiRace's artifact. ARGS="--write docs/simulator/checker.md" puts the
# table into the book.
INDIGO ?=
.PHONY: test-races
test-races: build venv $(CACHE)/nvcc/.installed  ## the checker on Indigo's kernels with planted races, beside HiRace's counts: ten minutes. INDIGO=CHECKOUT
	@test -d "$(INDIGO)/indigo" || { echo "test-races: INDIGO has to name a checkout of HiRace's artifact"; exit 2; }
	CUDA_HOME=$$(cd $(NVCC)/lib/python3*/site-packages/nvidia/cu13 && pwd) $(PY) python/suite/races.py $(ARGS) "$(INDIGO)"

# Published figures of boards beside those of the virtual modules, and benchmarks without one beside the model's limits. SAMPLE names
# cudaTensorCoreGemm of NVIDIA's cuda-samples, compiled for sm_87 with the shared runtime. ARGS="--write docs/simulator/model.md" puts the tables into
# the book, ARGS="--only fma" runs the benchmarks whose names begin so, and ARGS="--jobs 1" runs one at a time.
.PHONY: test-model
test-model: build venv  ## the model of the time beside published figures of boards, with the mean error: minutes, not part of `make test`
	$(PY) python/suite/model $(if $(SAMPLE),--sample "$(SAMPLE)") $(ARGS)

# Kernels that nobody chose: every form of PTX that the assembler takes for sm_87, and corpora of programs: CUB, libcu++, cooperative
# groups, matrix products, algorithms, and kernels of Numba. Both go on where they were stopped, print a line about how far they are,
# and end with a table. ARGS="--only atom.global --level O3", for example. pytest runs a sample of each.
FORMS := $(CACHE)/forms
NUMBA := $(CACHE)/numba
.PHONY: test-kernels test-ptx test-ways test-corpora test-random test-mutants
test-kernels: test-ptx test-corpora  ## every form of PTX, and corpora of programs: hours, not part of `make test`
test-ptx: build venv
	$(PY) python/suite/ptx --state "$(CURDIR)/$(FORMS)"/ptx.jsonl $(ARGS)
test-ways: build venv  ## the tests of kernels with both compilers, each with and without --device-debug: minutes; `make test` tries two of these four, of some tests a sample
	TEGRARM_TEST_WAYS=all $(PY) -m pytest -n 3 -c python/pyproject.toml --rootdir python python/tests/test_compilers.py python/tests/test_kernels_*.py
test-random: build venv  ## random C programs (Csmith, from Debian) as kernels, beside what g++ makes of them: ARGS="--first 1 --count 200"
	$(PY) python/suite/random_c.py $(ARGS)
test-corpora: build $(NUMBA)/.installed
	$(NUMBA)/bin/python python/suite/corpora --state "$(CURDIR)/$(FORMS)"/corpora.jsonl $(ARGS)

$(NUMBA)/.installed: python/suite/numba-requirements.txt python/requirements.txt python/pyproject.toml
	$(PYTHON) -m venv $(NUMBA)
	$(NUMBA)/bin/python -m $(PIP) install -r python/requirements.txt
	$(NUMBA)/bin/python -m $(PIP) install -r python/suite/numba-requirements.txt
	$(NUMBA)/bin/python -m $(PIP) install --no-deps --no-build-isolation --editable python
	@touch $@

# numba-cuda's own tests, as they are in its wheel, and tinygrad's with its CUDA device, on libcuda.so.1. ARGS="cudapy.test_atomics" takes one
# module of Numba's. tinygrad's kernels are compiled by NVRTC, from its own PTX, and by nvcc. SAMPLES=CHECKOUT adds the driver programs of
# NVIDIA's cuda-samples, which are fetched and changed by nobody here.
SAMPLES ?=
NUMBA_CUDA := $(CACHE)/numba-cuda
NVCC := $(CACHE)/nvcc
.PHONY: test-cuda
test-cuda: build venv $(NUMBA_CUDA)/.installed $(SUITE)/.installed $(NVCC)/.installed  ## numba-cuda's own tests and tinygrad's DEV=CUDA on the CUDA library: an hour, not part of `make test`
	$(STAND_IN) TEGRARM_LOG=off $(PY) -m tegrarm run --cuda -- $(NUMBA_CUDA)/bin/python python/suite/numbas.py $(ARGS)
	CUDA_HOME=$$(cd $(NVCC)/lib/python3*/site-packages/nvidia/cu13 && pwd) && export CUDA_HOME PATH="$$CUDA_HOME/bin:$$PATH" && \
		$(STAND_IN) TEGRARM_LOG=off $(PY) -m tegrarm run --cuda -- $(SUITE)/bin/python python/suite/run.py --cache "$(WHOLE_CACHE)" --device cuda
	$(if $(SAMPLES),$(STAND_IN) TEGRARM_LOG=off $(PY) -m tegrarm run --cuda -- $(PY) python/suite/samples.py --cache "$(WHOLE_CACHE)/cuda-samples" "$(SAMPLES)",@echo "test-cuda: SAMPLES names no checkout of cuda-samples, so its programs are left out")

$(NUMBA_CUDA)/.installed: python/suite/numba-requirements.txt
	$(PYTHON) -m venv $(NUMBA_CUDA)
	$(NUMBA_CUDA)/bin/python -m $(PIP) install -r $<
	@touch $@

# A program of CUDA C++ with <<<...>>>, compiled by NVIDIA's nvcc and linked with NVIDIA's shared runtime, on ours.
.PHONY: test-cudart
test-cudart: build venv $(NVCC)/.installed  ## a program that NVIDIA's nvcc compiles, on libcudart.so.13: a minute, and a download of 200 MB
	$(PY) -m pytest -c python/pyproject.toml --rootdir python python/tests/test_cuda_door.py -k "runtime" $(ARGS)

$(NVCC)/.installed:
	$(PYTHON) -m venv $(NVCC)
	$(NVCC)/bin/python -m $(PIP) install nvidia-cuda-nvcc==13.* nvidia-cuda-crt==13.* nvidia-nvvm==13.* nvidia-cuda-runtime==13.* nvidia-cuda-cccl==13.* nvidia-cuda-profiler-api==13.* \
		nvidia-nvjitlink==13.* nvidia-nvtx==13.*
	@touch $@

# The programs of cuda-samples that use the runtime, compiled by `tegrarm nvcc`: SAMPLES names the checkout, ARGS="vectorAdd scan" takes some.
.PHONY: test-samples
test-samples: build venv $(NVCC)/.installed  ## the programs with <<<...>>> of a checkout of NVIDIA's cuda-samples (SAMPLES=...), unmodified: an hour, not part of `make test`
	@test -d "$(SAMPLES)/Samples" || { echo "test-samples: SAMPLES has to name a checkout of cuda-samples"; exit 2; }
	CUDA_HOME=$$(cd $(NVCC)/lib/python3*/site-packages/nvidia/cu13 && pwd) $(STAND_IN) \
		$(PY) -m tegrarm run --cuda -- $(PY) python/suite/runtime_samples.py --cache "$(WHOLE_CACHE)/runtime-samples" "$(SAMPLES)" $(ARGS)

# The CUDA programs of PolyBench-ACC: POLYBENCH names the checkout, ARGS="--size MINI mvt" takes a smaller data set and one program.
POLYBENCH ?=
.PHONY: test-polybench
test-polybench: build venv $(NVCC)/.installed  ## the CUDA programs of a checkout of PolyBench-ACC (POLYBENCH=...): minutes, not part of `make test`
	@test -d "$(POLYBENCH)/CUDA" || { echo "test-polybench: POLYBENCH has to name a checkout of PolyBench-ACC"; exit 2; }
	CUDA_HOME=$$(cd $(NVCC)/lib/python3*/site-packages/nvidia/cu13 && pwd) $(STAND_IN) \
		$(PY) -m tegrarm run --cuda -- $(PY) python/suite/polybench.py --cache "$(WHOLE_CACHE)/polybench" "$(POLYBENCH)" $(ARGS)

# The wheel of numba-cuda-mlir has no tests: MLIR names a checkout of it, whose release is installed. ARGS="tests/test_atomics.py" takes a file.
MLIR      ?=
MLIR_VENV := $(CACHE)/numba-cuda-mlir
.PHONY: test-cuda-mlir
test-cuda-mlir: build venv  ## the tests of a checkout of numba-cuda-mlir (MLIR=...) on the CUDA library: an hour, not part of `make test`
	@test -f "$(MLIR)/src/numba_cuda_mlir/VERSION" || { echo "test-cuda-mlir: MLIR has to name a checkout of numba-cuda-mlir"; exit 2; }
	$(PYTHON) -m venv $(MLIR_VENV)
	$(MLIR_VENV)/bin/python -m $(PIP) install "pip>=25.1"
	$(MLIR_VENV)/bin/python -m $(PIP) install "numba-cuda-mlir[cu12]==$$(cat "$(MLIR)/src/numba_cuda_mlir/VERSION")" --group "$(MLIR)/pyproject.toml:test" pytest-timeout
	TEGRARM_LOG=off PYTHONDONTWRITEBYTECODE=1 $(PY) -m tegrarm run --cuda -- $(MLIR_VENV)/bin/python -m pytest -n 2 --timeout 900 -p no:cacheprovider --rootdir "$(MLIR)" -c "$(MLIR)/pyproject.toml" $(or $(ARGS:%="$(MLIR)"/%),"$(MLIR)/tests")

# The same kernels by the compilers of sixteen CUDAs, one wheel each: are all accepted, and are the results the same bit for bit? ARGS="12.4.127"
# takes one. pytest compares the two compilers that the other tests use.
.PHONY: test-compilers
test-compilers: build venv  ## NVRTC of every CUDA from 11.8 to 13.5: minutes, and downloads of two gigabytes
	$(PY) python/suite/compilers.py --cache $(CACHE) $(ARGS)

# Changes one rule of one opcode at a time, as the engine would see it, and looks for a kernel of the table that gives another result. A row
# of which nothing is noticed fails. ARGS="--every 50 --rows 20" is a sample of minutes.
MUTANTS = $(TARGET)/release/examples/mutants
test-mutants: build venv  ## whether the table of PTX notices a wrong rule of each opcode: hours, not part of `make test`
	$(CARGO) build --release --locked -p sm87 --example mutants
	$(PY) python/suite/ptx/mutate.py "$(CARGO_TARGET_DIR)/release/examples/mutants" $(ARGS)

# torch is installed first, because it asks for its own versions of NVIDIA's compilers. The versions of the other tests replace them.
$(SUITE)/.installed: python/requirements.txt python/suite/requirements.txt
	$(PYTHON) -m venv $(SUITE)
	$(SUITE)/bin/python -m pip install --quiet --disable-pip-version-check -r python/suite/requirements.txt
	$(SUITE)/bin/python -m pip install --quiet --disable-pip-version-check -r python/requirements.txt
	$(SUITE)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable python
	@touch $@

# Tests 1,000 planning problems, a thousand devices, 200 faults, the decoder, and a cluster from which a node is removed. This takes long
# and is not part of `make test`, which runs a sample of each.
test-pool: build venv-pool  ## everything about the pool
	TEGRARM_TEST_POOL=long $(PY) -m pytest -c python/pyproject.toml --rootdir python python/tests/pool $(ARGS)

# ARGS="--kind space" takes one property of the folder's name, ARGS="--suites pytest --keep" one suite in a copy that stays.
.PHONY: test-odd-paths
test-odd-paths:  ## a copy of the checkout below `tmp`, with a space, an umlaut and 200 characters, through a symbolic link; an hour
	$(PYTHON) python/tests/run_odd_paths.py --cache "$(WHOLE_CACHE)" $(ARGS)

# A bare system in CLEAN_ROOT, unpacked by debootstrap where we are root; see the script for the rest.
CLEAN_ROOT  ?= $(CACHE)/clean-root
CLEAN_SUITE ?= bookworm
.PHONY: test-clean-root
test-clean-root:  ## the README's two commands on a bare Debian or Ubuntu (CLEAN_SUITE=noble); not part of `make test`
	python/tests/clean_root.sh "$(CLEAN_ROOT)" $(CLEAN_SUITE) $(ARGS)

# The monitor nvtop is in Debian's section contrib, which a machine need not have in its own sources: apt gets it in directories of its own.
NVTOP := $(CACHE)/nvtop
.PHONY: nvtop
nvtop: $(NVTOP)/.unpacked  ## .cache/nvtop: the monitor of Debian, which the tests of NVML then run, too
$(NVTOP)/.unpacked:
	@set -e; apt="$(WHOLE_CACHE)/nvtop/apt"; mkdir -p "$$apt/lists/partial" "$$apt/cache/archives/partial"; . /etc/os-release; \
	mirror=$$(apt-get indextargets --format '$$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | sort -u | head -n 1); \
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $$mirror $$VERSION_CODENAME contrib" > "$$apt/sources.list"; \
	get() { apt-get -qq -o "Dir::Etc::sourcelist=$$apt/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$$apt/lists" \
		-o "Dir::Cache=$$apt/cache" -o APT::Sandbox::User=root "$$@"; }; \
	get update; (cd "$$apt" && get download nvtop); dpkg-deb -x "$$apt"/nvtop_*.deb $(NVTOP)
	@touch $@

# Ubuntu's releases are those of JetPack 5, 6 and 7. NEWER_PYTHON names a Python in the root of focal, if the one that uv fetches cannot be had.
# test-boards-arm64 runs those of arm64 under qemu; their suites are Debian's, because few machines reach a mirror of Ubuntu's ports (MIRROR).
BOARD_SUITES ?= focal jammy noble
BOARD_ARM_SUITES ?= bookworm
.PHONY: test-boards test-boards-arm64
test-boards: deb-computer wheel  ## the commands of docs/boards.md from the package to the demo on bare Ubuntu 20.04, 22.04 and 24.04; not part of `make test`
	@set -e; for suite in $(BOARD_SUITES); do python/tests/board_root.sh "$(CLEAN_ROOT)" $$suite "$(DIST)"; done
test-boards-arm64: deb-board wheel-aarch64  ## the same for arm64, on a bare Debian 12 under qemu-user (BOARD_ARM_SUITES="jammy noble": Ubuntu): an hour, not part of `make test`
	@set -e; for suite in $(BOARD_ARM_SUITES); do python/tests/board_root.sh "$(CLEAN_ROOT)" $$suite "$(DIST)" arm64; done

test-tinygrad-releases: build venv  ## five published tinygrads, each plain, through LD_PRELOAD: long, not part of `make test`
	$(PY) python/tests/run_tinygrad_releases.py --cache "$(WHOLE_CACHE)" $(ARGS)

# What tinygrad's next release does by ioctl, as a C program: 10,000 schedules of ten launches through each door on three kernels.
.PHONY: test-schedules
test-schedules: build  ## long: the C program of ctests/schedules.c; `make test` runs 200 schedules each
	$(MAKE) --no-print-directory -C ctests by-address RUNS=10000

# The many small objects of that release: 200,000 of them made, mapped, used, unmapped and freed through each door, in the memory, the
# descriptors and the mappings of the first tenth.
.PHONY: test-objects
test-objects: build  ## minutes: the C program of ctests/objects.c; `make test` makes 2,000 objects through each door
	$(MAKE) --no-print-directory -C ctests objects OBJECTS=200000

# A tinygrad that is not published yet, or that nobody has tried: which names of its inside differ, and test_tiny.py in every way there is.
.PHONY: test-tinygrad-next
test-tinygrad-next: build venv  ## a checkout or a wheel of tinygrad (TINYGRAD=...) through every door: minutes, not part of `make test`
	$(PY) python/tests/run_tinygrad_next.py --cache "$(WHOLE_CACHE)" $(TINYGRAD)

# Runs LibreCUDA's own test programs through LD_PRELOAD and compares what they print. Its source is fetched at a fixed commit, and built
# with cmake. tests/files/librecuda.rs makes the same calls and needs neither.
test-librecuda: build venv  ## LibreCUDA's test programs, which need its source, git and cmake; not part of `make test`
	$(PY) python/tests/run_librecuda.py --source "$(WHOLE_CACHE)/librecuda"

# Runs the bring-up, the doors, test_tiny and the whole root suite on r35, r35.4, r36 and r39, and prints a table. `make test` runs the row
# of the newest kernel without the root suite. Most tests of that suite try every release themselves.
test-releases: build venv $(TEST_TINY) $(CLANG)  ## every kernel of the virtual Orin, with the whole root suite: a table
	$(STAND_IN) $(PY) python/tests/run_l4t_releases.py --test-tiny "$(CURDIR)/$(TEST_TINY)" $(ARGS)
