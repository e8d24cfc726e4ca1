# `make demo` and `make test` are the commands that a newcomer needs. Everything that they make lies in target/, .venv/ and .cache/.
# What is handed out, what takes hours and what looks for rare mistakes is in make/*.mk.

CARGO  ?= cargo
PYTHON ?= python3
CC     ?= cc
CXX    ?= c++

# make splits the names of files at spaces and has no way to quote them. Names in rules are therefore relative, so that the checkout may lie
# anywhere, and what a program gets as a whole path is in quotation marks. python/checks/makefiles.py looks for the rest.
export CARGO_TARGET_DIR ?= $(CURDIR)/target
ifeq ($(filter /%,$(firstword $(CARGO_TARGET_DIR))),)
override CARGO_TARGET_DIR := $(CURDIR)/$(CARGO_TARGET_DIR)
endif
TARGET := $(subst $(CURDIR)/,,$(CARGO_TARGET_DIR))
ifneq ($(words [$(TARGET)]),1)
$(error CARGO_TARGET_DIR has a space in it ($(CARGO_TARGET_DIR)), which make cannot use as a name of a file: leave it unset, or name another folder)
endif
CACHE  := .cache
VENV   := .venv
PY     := $(VENV)/bin/python
SUITE  := $(CACHE)/suite
LIB    := $(TARGET)/release/libtegrarm.so
SIM    := $(TARGET)/release/tegrarm-sim
# The same as whole paths, for programs that work in another folder.
WHOLE_CACHE := $(CURDIR)/$(CACHE)
WHOLE_SIM   := $(CARGO_TARGET_DIR)/release/tegrarm-sim

TINYGRAD         := $(shell sed -n 's/^tinygrad==//p' python/requirements-demo.txt)
CBINDGEN_VERSION := 0.29.4
CBINDGEN         := $(CACHE)/cbindgen-$(CBINDGEN_VERSION)/bin/cbindgen
TEST_TINY        := $(CACHE)/tinygrad-$(TINYGRAD)/test/test_tiny.py

# The backend is the board if the machine is one, and the virtual Orin otherwise. A TEGRARM_BACKEND in the environment overrides this.
export TEGRARM_BACKEND ?= $(if $(wildcard /dev/nvgpu),nvgpu,sim)
export TEGRARM_LIB     := $(CARGO_TARGET_DIR)/release/libtegrarm.so

.DEFAULT_GOAL := build
.PHONY: build venv venv-pool demo demo-pool test-pool install wheel wheel-aarch64 wheels test test-aarch64 test-aarch64-sample test-aarch64-wheel cargo-test test-threads test-out-of-process fuzz fuzz-seeds ctest pytest test-tinygrad test-tinygrad-sample test-tinygrad-releases test-librecuda test-releases test-releases-sample test-disasm lint header docs abi-check abi-baseline tsan soak bench clean distclean

build:            ## the shared libraries (release)
	$(CARGO) build --release --locked -p tegrarm -p tegrarm-preload -p tegrarm-nvml -p tegrarm-cuda -p tegrarm-cudart
	@ln -sf libtegrarm.so $(LIB).0  # its soname, which is what programs linked with it look for
	@mkdir -p $(dir $(LIB))nvml && ln -sf ../libtegrarm_nvml.so $(dir $(LIB))nvml/libnvidia-ml.so.1  # in a folder that a program has to ask for
	@mkdir -p $(dir $(LIB))cuda && ln -sf ../libtegrarm_cuda.so $(dir $(LIB))cuda/libcuda.so.1  # likewise
	@ln -sf libcuda.so.1 $(dir $(LIB))cuda/libcuda.so  # for the linker
	@for major in 12 13; do ln -sf ../tegrarm_cudart$$major $(dir $(LIB))cuda/libcudart.so.$$major; done

# --- Python -------------------------------------------------------------------------------------------------------

PIP_SAYS ?= --quiet
PIP      := pip --disable-pip-version-check $(PIP_SAYS)

.PHONY: venv-demo
venv: $(VENV)/.installed
$(VENV)/.installed: $(VENV)/.demo python/requirements.txt
	$(PY) -m $(PIP) install -r python/requirements.txt
	@touch $@

# What the demo needs: a fourth of what the tests need.
venv-demo: $(VENV)/.demo
$(VENV)/.demo: python/requirements-demo.txt python/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PY) -m $(PIP) install -r python/requirements-demo.txt
	$(PY) -m $(PIP) install --no-deps --no-build-isolation --editable python
	@touch $@

# tegrarm[pool] is installed only on request, because Ray is larger than all other packages together.
venv-pool: $(VENV)/.pool
$(VENV)/.pool: $(VENV)/.installed python/requirements-pool.txt
	$(PY) -m $(PIP) install -r python/requirements-pool.txt
	@touch $@

# tinygrad's own tests come with its source distribution. It is fetched here and never committed or modified.
$(TEST_TINY): | venv
	rm -rf $(CACHE)/sdist && mkdir -p $(CACHE)/sdist
	$(PY) -m pip download --quiet --disable-pip-version-check --no-deps --no-binary tinygrad --no-build-isolation \
		--dest $(CACHE)/sdist tinygrad==$(TINYGRAD)
	tar -C $(CACHE) -xzf $(CACHE)/sdist/tinygrad-$(TINYGRAD).tar.gz
	rm -rf $(CACHE)/sdist
	@test -f $@ && touch $@

# Two to three minutes the first time, on two cores: both at once, with a line that says how far they are.
demo:             ## tensors through the library, two compilers
	@$(PYTHON) packaging/prepare.py "library=$(MAKE) --no-print-directory build" "Python=$(MAKE) --no-print-directory PIP_SAYS= venv-demo"
	$(PY) examples/python/demo.py

demo-pool: build venv-pool  ## a transformer over three virtual Orins, one worker killed in the middle (a few minutes)
	$(PY) examples/python/demo_pool.py

include make/packages.mk

# --- tests --------------------------------------------------------------------------------------------------------

# Two lanes of suites, because most leave a core without work now and then. Those behind `fetch` need what it brings. The C programs, which
# test-out-of-process and ctest make in the same folder, are in one lane.
SUITES := cargo-test,test-out-of-process,ctest,test-threads+fetch,test-tinygrad-sample,test-glibc,test-aarch64-sample,test-releases-sample,pytest
test:             ## every test there is, and a table at the end
	@MAKE="$(MAKE)" $(PYTHON) packaging/run_suites.py $(SUITES)

# Tests whose answers come from the kernel run on r35, too. `make test-releases` runs all tests of the library on each release. The programs
# of the engine's tests are interpreted, because few of them are long, and then all of them are translated. `--workspace` keeps cargo from
# compiling the engine again, with the features that its own dependencies ask for.
cargo-test:
	$(CARGO) test --workspace --locked
	TEGRARM_TEST_TRANSLATED=1 $(CARGO) test --workspace --locked --test sm
	TEGRARM_SIM_L4T=r35 $(CARGO) test --locked -p tegrarm --test bringup --test conflicts --test files --test objects --test profiling --test runtime
	$(CARGO) test --locked -p tegrarm --no-default-features --lib backend

# Each thread repeats its work often enough for threads to meet in every way. In plain `cargo test` it does so a hundred times.
test-threads:
	TEGRARM_TEST_ROUNDS=1000 $(CARGO) test --locked -p tegrarm --test threads

# The same tests with real system calls. The supervisor, which is another process, provides the device nodes. Cargo's runner starts
# the test binaries. Tests run one at a time, because the supervisor counts the objects of all processes together. A test that makes
# its own virtual board says why.
HOST     := $(shell $(CARGO) -vV 2>/dev/null | sed -n 's/^host: //p')
RUNNER   := CARGO_TARGET_$(shell echo $(HOST) | tr a-z- A-Z_)_RUNNER

.PHONY: $(SIM)
$(SIM):
	$(CARGO) build --release --locked -p tegra-sim --bin tegrarm-sim

.PHONY: sim
sim: $(SIM)       ## tegrarm-sim: runs programs on a virtual Orin, replays recordings, prints machine code

test-out-of-process: build $(SIM) ## the suite on the device nodes of `tegrarm-sim run`
	env $(RUNNER)="$(SIM) run --" RUST_TEST_THREADS=1 TEGRARM_TEST_BACKEND=nvgpu $(CARGO) test --locked -p tegrarm --tests
	env $(RUNNER)="$(SIM) run --l4t r35 --" RUST_TEST_THREADS=1 TEGRARM_SIM_L4T=r35 TEGRARM_TEST_BACKEND=nvgpu $(CARGO) test --locked -p tegrarm --test bringup
	$(MAKE) --no-print-directory -C ctests TEGRARM_BACKEND=nvgpu RUN="'$(WHOLE_SIM)' run --" plain

# Two of its parts at the same time, because each runs one program after the other.
ctest: build venv
	$(MAKE) --no-print-directory -j2 --output-sync=target -C ctests test

# Tests what is handed out on the oldest system for which it is: glibc 2.31 of Debian 11 (and Ubuntu 20.04), unpacked into the cache. The
# libraries for x86-64 are built with fewer optimisations for this, and the tests of wheels take the same ones.
.PHONY: test-glibc test-glibc-aarch64
test-glibc: export TEGRARM_QUICKLY := 1
test-glibc: venv ## symbol versions of what is handed out, and the C tests on glibc 2.31
	$(MAKE) --no-print-directory portable
	$(PY) packaging/glibc.py --most $(GLIBC) $(addprefix $(TARGET)/quickly/$(X86)/release/,$(HANDED_OUT))
	python/tests/glibc.sh "$(WHOLE_CACHE)/glibc" amd64 "$(CARGO_TARGET_DIR)/quickly/$(X86)" "$(CURDIR)/$(ZIG)/bin/python"
test-glibc-aarch64: portable-aarch64 venv
	$(PY) packaging/glibc.py --most $(GLIBC) $(addprefix $(PORTABLE)/$(ARM)/release/,$(HANDED_OUT))
	python/tests/glibc.sh "$(WHOLE_CACHE)/glibc" arm64 "$(WHOLE_PORTABLE)/$(ARM)" "$(CURDIR)/$(ZIG)/bin/python"
HANDED_OUT := libtegrarm.so libtegrarm_preload.so libtegrarm_nvml.so libtegrarm_cuda.so tegrarm_cudart12 tegrarm_cudart13 tegrarm-sim

# The suites on another architecture: the same programs. qemu-user cannot start a second one, makes its own /proc/self/maps, and
# gives all threads one table of descriptors, has errnos of its own for some mistakes, and does not tell its host which memory a child shall
# not have: tests that need more are left out by name.
ARM_SKIP := $(addprefix --skip ,a_child_that_uses_its_parents_device a_child_that_reads_its_parents_memory \
	a_broken_pipe_and a_fifo_that_nobody_reads a_recording_that_finds every_call_answers nobody_is_told settings_that standard_error_that_cannot \
	a_panic_is_a_status a_program_that refused_escapes_and_uvm_calls_are_told the_variable_chooses_steps \
	own_pages_are_exchanged other_pages_are_pinned thousands_of_live_buffers an_ioctl_on_something_else errors_are_mmaps_own every_ioctl_is_answered a_gpu_without_a_thread waits_run_a_gpu)
test-aarch64: arm-build venv test-aarch64-wheel test-glibc-aarch64 ## the root crate's and the simulator's Rust tests, the C tests and the wheel, under qemu-user
	$(CARGO) test --locked --target $(ARM) -p tegrarm -p tegrarm-rm -p tegrarm-kmd -- $(ARM_SKIP)
	$(CARGO) test --locked --target $(ARM) -p sm87-num -p sm87 -p sm87-check -p sm87-model -p tegra-mm -p tegra-hw -p tegra-gpu -p tegra-kernel -p tegra-sim --lib --test 'kernel*' --test front_end --test sm --test checker --test model -- $(ARM_SKIP)
	$(MAKE) --no-print-directory -C ctests $(ARM_CTEST) plain examples

# Runs the demo from the AArch64 wheel. Debian's AArch64 Python, unpacked into the cache and run by qemu, installs the wheel.
test-aarch64-wheel: DIST := $(CACHE)/aarch64/dist
test-aarch64-wheel: wheel-aarch64
	python/tests/aarch64_wheel.sh "$(WHOLE_CACHE)/aarch64" "$(CURDIR)/$(PY)"

# Tests the parts that differ between architectures: memory order, host objects and structure layout. `make test` runs them if there is
# a cross compiler.
ARM_CTEST := CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ BELOW=/$(ARM) RUN="$(ARM_RUN)"
test-aarch64-sample: venv
ifeq ($(and $(shell command -v aarch64-linux-gnu-gcc),$(shell command -v qemu-aarch64-static),$(wildcard $(shell rustc --print sysroot)/lib/rustlib/$(ARM))),)
	@echo "test-aarch64-sample: SKIPPED, there is no aarch64-linux-gnu-gcc, no qemu-aarch64-static or no Rust target $(ARM)"
else
	$(CARGO) test --locked --target $(ARM) -p tegrarm --test runtime -- $(ARM_SAMPLE)
endif
ARM_SAMPLE := device:: hostobj:: replay:: barrier::

# The reference of some tests is tinygrad's CPU device, which needs a clang, or C++: the compiler that we link with will do for both.
CLANG := $(if $(and $(shell command -v clang),$(shell command -v c++)),,$(ZIG)/.installed)
STAND_IN := $(if $(shell command -v clang),,TEGRARM_TEST_ZIG="$(CURDIR)/$(ZIG)/bin/python" CC="$(CURDIR)/python/tests/cc_without_clang.sh")
# Numba for a sample of its own tests, beside the compilers of CUDA that the environment of the tests has: a fifth of what `make test-cuda` fetches.
# numba-cuda looks for the compilers in the folder of its environment.
NUMBA_SAMPLE := $(CACHE)/numba-sample
NUMBA_NEEDS  := numba==0.68.1 llvmlite==0.50.0 numba-cuda==0.30.4 cuda-bindings==12.9.10 cuda-core==1.2.2 cuda-pathfinder==1.9.1 \
	nvidia-cuda-nvcc-cu12==12.9.86 filecheck==1.0.6
$(NUMBA_SAMPLE)/.installed: python/requirements.txt | $(VENV)/.installed
	$(PYTHON) -m venv --without-pip $(NUMBA_SAMPLE)
	$(PY) -m $(PIP) --python $(NUMBA_SAMPLE)/bin/python install --no-deps --no-compile $(NUMBA_NEEDS)
	packages="$$($(PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" && cd $(NUMBA_SAMPLE)/lib/python3*/site-packages && \
		echo "$$packages" > environment.pth && for part in cuda_nvrtc nvjitlink cuda_runtime; do ln -sfn "$$packages/nvidia/$$part" nvidia/$$part; done
	@touch $@

# Three tests at a time, because a third of their time is spent waiting.
pytest: build venv-pool $(TEST_TINY) $(SIM) $(CLANG) $(NUMBA_SAMPLE)/.installed
	@$(if $(shell command -v apt-get),$(MAKE) --no-print-directory nvtop || echo "no nvtop: its test is left out",:)
	TEGRARM_TEST_TINY="$(CURDIR)/$(TEST_TINY)" TEGRARM_TEST_ZIG="$(CURDIR)/$(ZIG)/bin/python" $(PY) -m pytest -n 3 --dist loadfile --no-loadscope-reorder --durations 10 --durations-min 20 -c python/pyproject.toml --rootdir python --ignore python/tests/triton python/tests

# Debian has a torch for the CPU (python3-torch) that has a twentieth of the size of PyPI's. It belongs to the system's Python and numpy,
# so the environment of the sample uses these. Without it, the sample leaves out the tests that need torch, and prints a line about it.
SYSTEM_TORCH := $(wildcard /usr/lib/python3/dist-packages/torch/__init__.py)
SAMPLE_VENV  := $(if $(SYSTEM_TORCH),$(CACHE)/sample,$(VENV))
test-tinygrad-sample: build $(SAMPLE_VENV)/.installed $(CLANG)  ## minutes of it
	$(STAND_IN) $(SAMPLE_VENV)/bin/python python/suite/run.py --cache "$(WHOLE_CACHE)" --sample $(ARGS)
	$(STAND_IN) $(SAMPLE_VENV)/bin/python python/suite/run.py --cache "$(WHOLE_CACHE)" --sample --device tegra $(ARGS)

$(CACHE)/sample/.installed: python/requirements-demo.txt python/requirements.txt python/pyproject.toml
	/usr/bin/python3 -m venv --system-site-packages $(CACHE)/sample
	sed '/^numpy==/d; /^-r /d' python/requirements-demo.txt python/requirements.txt > $(CACHE)/sample/requirements.txt
	$(CACHE)/sample/bin/python -m pip install --quiet --disable-pip-version-check -r $(CACHE)/sample/requirements.txt
	$(CACHE)/sample/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable python
	@touch $@

# What the suites need from the indexes of packages, which is fetched while Rust is compiled.
.PHONY: fetch
fetch: venv-pool $(TEST_TINY) $(SAMPLE_VENV)/.installed $(ZIG)/.installed $(NUMBA_SAMPLE)/.installed

test-releases-sample: build venv $(TEST_TINY) $(CLANG)
	$(STAND_IN) $(PY) python/tests/run_l4t_releases.py --test-tiny "$(CURDIR)/$(TEST_TINY)" --without "root suite" --without test_tiny r39

# What `tegrarm validate` wrote on a board: checked, made again on the simulator, and filed in tests/data/boards.
FILE ?=
.PHONY: replay-board evidence-data
replay-board: build venv $(SIM)  ## FILE=orin-….tar.zst: checks a board's evidence, replays it, prints the differences by rule, files it
	$(PY) -m tegrarm.validate.board $(FILE) $(ARGS)
evidence-data: venv  ## python/tegrarm/validate/data: the kernels, inputs and layouts that `tegrarm validate` brings along
	$(PY) python/suite/evidence.py $(ARGS)

# --- checks -------------------------------------------------------------------------------------------------------

.PHONY: check fast-tests checks msrv deny

# Runs everything that does not take minutes, and prints what it leaves to `make test`.
check: lint fast-tests ## format, lint, generated files and the fast tests: what to run before every commit
	@echo "make check: all is well"

fast-tests:
	$(PYTHON) python/checks/fast_tests.py

# A check links nothing: CUSTOM_LIBFUZZER_PATH, which is any file of the crate libfuzzer-sys, keeps it from compiling the fuzzer's C++.
lint: checks $(CBINDGEN)
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	CUSTOM_LIBFUZZER_PATH=libfuzzer/FuzzerMain.cpp $(CARGO) check --manifest-path fuzz/Cargo.toml --locked
	$(PY) -m ruff check python examples benches packaging judge
	$(PY) -m mypy --config-file python/pyproject.toml
	$(MAKE) --no-print-directory GENERATED_TO=$(CACHE)/generated generated
	$(PY) python/checks/drift.py $(CACHE)/generated
	$(MAKE) --no-print-directory device-library-check
	@$(if $(HAS_DENY),$(DENY_CHECK),echo "lint: cargo-deny SKIPPED, it is not installed: \`make deny\` installs and runs it")

# The house rules. Each check tries itself on samples first, so that a check that finds nothing any more fails.
checks: venv
	$(PY) python/checks/tree.py
	$(PY) python/checks/size.py
	$(PY) python/checks/dependencies.py
	$(PY) python/checks/packages.py
	$(PY) python/checks/rust_version.py
	$(PY) python/checks/claims.py
	$(PY) python/checks/makefiles.py
	$(PY) python/checks/commits.py
	$(PY) python/checks/abi.py
	$(PY) python/checks/book.py
	$(PY) python/checks/hardware.py
	$(PY) judge/mutants.py --check

# Builds with the oldest Rust that Cargo.toml promises. rustup fetches it if it is not installed.
MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
msrv:             ## everything that we publish, built by the oldest Rust that Cargo.toml promises
	@rustup run $(MSRV) rustc --version 2>/dev/null || rustup toolchain install --profile minimal $(MSRV)
	RUSTUP_TOOLCHAIN=$(MSRV) $(CARGO) check --workspace --all-targets --locked --target-dir "$(CARGO_TARGET_DIR)/msrv"

# Runs cargo-deny on deny.toml. `make lint` needs no network, so it leaves the advisories, which are in a git repository, to `make deny`.
DENY_VERSION := 0.20.2
DENY         := $(CACHE)/cargo-deny-$(DENY_VERSION)/bin/cargo-deny
HAS_DENY     := $(firstword $(wildcard $(DENY)) $(shell command -v cargo-deny))
DENY_CHECK    = $(HAS_DENY) --all-features check --hide-inclusion-graph licenses bans sources
deny: $(DENY)     ## licences, versions, sources and known vulnerabilities of what we depend on (needs github.com)
	$(DENY) --all-features check
	$(DENY) --manifest-path fuzz/Cargo.toml --config deny.toml check licenses sources
	$(DENY) --manifest-path loom/Cargo.toml --config deny.toml check licenses sources

$(DENY):
	$(CARGO) install --quiet --locked --root "$(WHOLE_CACHE)"/cargo-deny-$(DENY_VERSION) --target-dir "$(WHOLE_CACHE)"/cargo-deny-build cargo-deny@$(DENY_VERSION)

# Files that are made from the source. `make header docs` rewrites them, and `make lint` makes them in another directory and compares. With
# `--workspace`, what makes them has the dependencies of `cargo test --workspace`; with `-p`, cargo would compile these anew, for other features.
GENERATED_TO ?= .
.PHONY: generated
generated: $(CBINDGEN) venv
	@mkdir -p $(GENERATED_TO)/include $(GENERATED_TO)/docs
	$(CARGO) build --quiet --workspace --locked --bin tegrarm-sim --example c_header --example support_matrix
	$(CBINDGEN) --quiet --config cbindgen.toml --output $(GENERATED_TO)/include/tegrarm.h src/capi/mod.rs
	$(TARGET)/debug/examples/c_header > $(GENERATED_TO)/include/tegrarm_abi.h
	$(TARGET)/debug/examples/c_header status > $(GENERATED_TO)/include/tegrarm_status.h
	$(TARGET)/debug/examples/support_matrix > $(GENERATED_TO)/counts.md
	$(TARGET)/debug/examples/support_matrix classes > $(GENERATED_TO)/docs/classes.md
	$(TARGET)/debug/examples/support_matrix controls > $(GENERATED_TO)/docs/controls.md
	$(TARGET)/debug/examples/support_matrix nodes > $(GENERATED_TO)/docs/nodes.md
	$(TARGET)/debug/tegrarm-sim manual $(GENERATED_TO)/packaging
	$(PY) packaging/manual.py $(GENERATED_TO)/packaging
	$(PY) packaging/ffi.py $(GENERATED_TO)/include/tegrarm.h $(GENERATED_TO)/python/tegrarm/_header.py
	$(PY) packaging/nvml_table.py $(GENERATED_TO)/docs/nvml-functions.md
	$(PY) packaging/ffi_rust.py $(GENERATED_TO)/include/tegrarm.h $(GENERATED_TO)/crates/tegrarm-client/src/header.rs

# Facts of NVIDIA's headers in the wheels. What the libraries answer stands in tables that are written by hand.
.PHONY: nvml-rows
nvml-rows: venv   ## crates/tegrarm-nvml/functions.tsv and src/abi.rs, from NVIDIA's header
	$(PY) packaging/nvml_rows.py $(dir $(firstword $(wildcard $(VENV)/lib/python*/site-packages/nvidia)))

header docs:      ## rewrites include/, tables of docs/ and README.md, man pages and completions from the source
	$(MAKE) --no-print-directory GENERATED_TO=$(CACHE)/generated generated
	$(PYTHON) python/checks/drift.py --write $(CACHE)/generated

# What printf, malloc and assert of CUDA C++ are linked with. The library carries the machine code, so that only who changes it needs the
# compilers.
.PHONY: device-library device-library-check
device-library: venv ## compiles src/runtime/library/device.cu with NVRTC and nvJitLink
	$(PY) packaging/device_library.py
device-library-check: venv ## compiles it and compares the machine code with the committed one; part of `make lint`
	$(PY) packaging/device_library.py --check

# The functions and numbers of CUDA's driver interface and runtime, which are facts of NVIDIA's headers.
.PHONY: cuda-rows
cuda-rows: venv   ## reads functions.tsv, numbers.tsv and results.tsv of tegrarm-cuda and tegrarm-cudart from the headers of the wheels
	$(PY) packaging/cuda_rows.py $(wildcard $(VENV)/lib/python3*/site-packages)

abi-check:        ## compares include/tegrarm.h with packaging/libtegrarm.abi (abidiff, of Debian's abigail-tools); part of `make lint`
	$(PYTHON) python/checks/abi.py
abi-baseline:     ## writes packaging/libtegrarm.abi anew, for a change of the ABI that is wanted
	$(PYTHON) python/checks/abi.py --write

# Makes the book as HTML. Only this needs the tool, which is fetched here. python/checks/book.py checks links without it, in `make lint`.
BOOK := $(CACHE)/book
.PHONY: book
book: $(BOOK)/.installed  ## .cache/site: the documentation as HTML
	$(BOOK)/bin/python -m properdocs build --quiet --strict --config-file packaging/book/properdocs.yml --site-dir "$(WHOLE_CACHE)"/site
	@echo "open .cache/site/index.html"

$(BOOK)/.installed: packaging/book/requirements.txt
	$(PYTHON) -m venv $(BOOK)
	$(BOOK)/bin/python -m pip install --quiet --disable-pip-version-check -r packaging/book/requirements.txt
	@touch $@

.PHONY: screens
screens: build venv $(SIM)  ## docs/images: pictures of doctor, top and trace, made by these commands (trace needs chromium)
	$(PY) packaging/book/screens.py docs/images $(ARGS)

.PHONY: book-test
book-test: build venv-pool $(TEST_TINY) $(SIM) $(CLANG)  ## runs every command and example of the README and the book, and follows every link
	$(PY) -m pytest -c python/pyproject.toml --rootdir python python/tests/test_book.py

# It reads a few files, so that optimisations would take longer than they save.
$(CBINDGEN):
	$(CARGO) install --quiet --locked --debug --root "$(WHOLE_CACHE)"/cbindgen-$(CBINDGEN_VERSION) --target-dir "$(WHOLE_CACHE)"/cbindgen-build cbindgen@$(CBINDGEN_VERSION)

include make/suites.mk make/endurance.mk

# --- figures ------------------------------------------------------------------------------------------------------

bench: build venv $(SIM) ## prints the project's figures, without a verdict; ARGS="submit frontend" prints only these two
	$(PY) benches/figures.py $(ARGS)

.PHONY: footprint
footprint: build venv $(SIM) ## what a process pays for the GPU, as the table of docs/small-boards.md
	$(PY) benches/footprint.py

# gpuocelot's source is a folder with its submodules, and tinygrad's a checkout of the release that is installed. Without these, git
# fetches both. A Python with torch, such as that of `make test-tinygrad`, also runs a hundred of tinygrad's tests.
PEER_SOURCE   ?=
PEER_TINYGRAD ?=
PEER_PYTHON   ?= $(if $(wildcard $(SUITE)/.installed),$(SUITE)/bin/python,$(PY))
.PHONY: bench-peer
bench-peer: build venv ## compares the speed with that of gpuocelot, the PTX emulator behind tinygrad's mock; see PEER_SOURCE above
	$(PEER_PYTHON) benches/peer/run.py --cache "$(WHOLE_CACHE)/peer" --source "$(PEER_SOURCE)" --tinygrad "$(PEER_TINYGRAD)" \
		--release $(TINYGRAD) $(ARGS)

clean:
	$(CARGO) clean
	$(MAKE) --no-print-directory -C ctests clean
	rm -rf $(VENV)
distclean: clean
	rm -rf $(CACHE)
