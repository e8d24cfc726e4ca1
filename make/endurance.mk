# What looks for rare mistakes: fuzz targets, the thread sanitizer, Miri, every order of threads, and a long run.

FUZZ_VERSION := 0.13.2
FUZZ         := $(CACHE)/cargo-fuzz-$(FUZZ_VERSION)
FUZZ_SECONDS ?= 600
# Larger inputs are not kept as seeds.
FUZZ_SEED_BYTES ?= 4096
# The programs of these targets pass pointers to the kernel or the library, which write there, or map memory at the GPU's addresses. The
# sanitizer's own memory must not lie there.
FUZZ_PLAIN   := ioctls nodes runtime verbs
FUZZ_ASAN    := cubin hostobj pushbuffer qmd recording ring sass

$(FUZZ)/bin/cargo-fuzz:
	$(CARGO) install --quiet --locked --root "$(CURDIR)/$(FUZZ)" --target-dir "$(WHOLE_CACHE)"/cargo-fuzz-build cargo-fuzz@$(FUZZ_VERSION)

fuzz: $(FUZZ)/bin/cargo-fuzz  ## every fuzz target for FUZZ_SECONDS each (needs a nightly toolchain)
	@set -e; for t in $(FUZZ_PLAIN) $(FUZZ_ASAN); do \
		case " $(FUZZ_PLAIN) " in *" $$t "*) sanitizer=none;; *) sanitizer=address;; esac; \
		rm -rf fuzz/corpus/$$t.seeds && mkdir -p fuzz/corpus/$$t; \
		$(PYTHON) packaging/fuzz_seeds.py unpack fuzz/seeds/$$t.tar.bz2 fuzz/corpus/$$t.seeds; \
		PATH="$(CURDIR)/$(FUZZ)/bin:$$PATH" $(CARGO) +nightly fuzz run -s $$sanitizer $$t fuzz/corpus/$$t fuzz/corpus/$$t.seeds -- \
			-max_total_time=$(FUZZ_SECONDS) -timeout=20 -rss_limit_mb=4096; \
	done

# The standard library is instrumented too (-Zbuild-std), because threads synchronize through its locks. No report is suppressed. The
# programs in C are compiled with the sanitizer, too. They run on the library in this process, and then, without it, on a supervisor with it.
TSAN_TESTS   := door:: channels:: device:: fences:: inputs:: queues:: replay::
TSAN_FOLDER  := $(TARGET)/tsan
TSAN_BUILT   := $(TSAN_FOLDER)/$(HOST)/debug
TSAN_RUNTIME  = $(wildcard $(shell rustc +nightly --print target-libdir)/librustc*_rt.tsan.a)
TSAN_CARGO    = CARGO_PROFILE_DEV_DEBUG=line-tables-only RUSTFLAGS="-Zsanitizer=thread" TEGRARM_TEST_ROUNDS=100 $(CARGO) +nightly
TSAN_WHERE    = --locked -Zbuild-std --target $(HOST) --target-dir "$(CARGO_TARGET_DIR)/tsan"
.PHONY: tsan-tests tsan-ctests tsan-rust-src
tsan: tsan-tests tsan-ctests ## threads of the library, of programs in C and of the supervisor under the thread sanitizer (needs a nightly toolchain with rust-src)
tsan-rust-src:
	@rustup component add --toolchain nightly rust-src
tsan-tests: tsan-rust-src
	$(TSAN_CARGO) test $(TSAN_WHERE) -p tegrarm --test threads --test bringup --test conflicts
	$(TSAN_CARGO) test $(TSAN_WHERE) -p tegrarm --test files --test objects --test runtime -- $(TSAN_TESTS)
	$(TSAN_CARGO) test $(TSAN_WHERE) -p tegra-gpu --test front_end
	$(TSAN_CARGO) test $(TSAN_WHERE) -p tegra-sim --test outlive swarm
tsan-ctests: tsan-rust-src build venv
	$(TSAN_CARGO) build $(TSAN_WHERE) -p tegrarm -p tegra-sim --lib --bins
	@ln -sf libtegrarm.so $(TSAN_BUILT)/libtegrarm.so.0
	$(MAKE) --no-print-directory -C ctests TSAN_BELOW=/tsan/$(HOST)/debug TSAN_RUNTIME=$(TSAN_RUNTIME) tsan
	$(MAKE) --no-print-directory -C ctests TEGRARM_BACKEND=nvgpu RUN="'$(CARGO_TARGET_DIR)/tsan/$(HOST)/debug/tegrarm-sim' run --quiet --" plain

# Miri interprets code without system calls and says where a pointer or a value breaks Rust's rules. These are the crates without system
# calls: tegra-hw, tegra-mm's allocator, and sm87, whose unsafe code is in `exec`. The engine's tests run twice, without vectors
# and with those of AVX2. In the tests of an SM, memory is pages of the heap.
#
# What is left out, and why. Memfds, sockets and processes (memfd, drawer and mapped Backing of tegra-mm, and the crates that are made of
# them): Miri does not have them. Three tests of images, and most kernels: they take many minutes each. With AVX2, what converts floats to
# halves: Miri does not have that instruction. tegrarm-abi, and the decoder, the disassembler and the arithmetic of sm87: they have no unsafe
# code.
MIRI_RUN  = $(CARGO) +nightly miri test --locked --target-dir "$(CARGO_TARGET_DIR)"/miri
MIRI      = PROPTEST_CASES=1 MIRIFLAGS=-Zmiri-disable-isolation $(MIRI_RUN)
MIRI_AVX2 = RUSTFLAGS="-Ctarget-feature=+avx2,+fma,+f16c,+popcnt,+bmi1,+bmi2,+lzcnt" $(MIRI)-avx2
# The pool of threads is rayon's. crossbeam, on which it is built, follows tree borrows and not stacked ones, and keeps memory until the end.
MIRI_TREE = PROPTEST_CASES=1 MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-tree-borrows -Zmiri-ignore-leaks" $(MIRI_RUN)
MIRI_LIB := exec:: --skip an_extended_image --skip the_cache_counts --skip a_program_has_a_most --skip exec::threads
MIRI_THREADS := exec::threads --skip threads_that_take_at_the_same_time
MIRI_F16 := --skip vectors_compute_what_scalars_do
MIRI_SM  := section_7_5_global section_7_6_shared
.PHONY: miri
miri: ## undefined behaviour in the crates that make no system calls, looked for by Miri (needs a nightly toolchain)
	@rustup component add --toolchain nightly miri rust-src
	$(MIRI) -p tegra-hw --lib
	$(MIRI) -p tegra-mm --lib buddy
	$(MIRI) -p sm87 --lib -- $(MIRI_LIB)
	$(MIRI_TREE) -p sm87 --lib -- $(MIRI_THREADS)
	$(MIRI) -p sm87 --test sm -- $(MIRI_SM)
	$(MIRI_AVX2) -p sm87 --lib -- $(MIRI_LIB) $(MIRI_F16)
	@echo "miri: no undefined behaviour in tegra-hw, the allocator of tegra-mm, and the engine (without $(MIRI_F16) with AVX2)"

.PHONY: loom
loom: ## hand-made synchronisation in every order of threads: handles, recovered queues, sleeps of the GPU's threads
	RUSTFLAGS="--cfg loom" $(CARGO) test --manifest-path loom/Cargo.toml --locked --release --target-dir "$(CARGO_TARGET_DIR)"/loom

fuzz-seeds: $(FUZZ)/bin/cargo-fuzz  ## adds what `make fuzz` found to the committed seeds: the fewest inputs that cover the same code
	@set -e; for t in $(FUZZ_PLAIN) $(FUZZ_ASAN); do \
		case " $(FUZZ_PLAIN) " in *" $$t "*) sanitizer=none;; *) sanitizer=address;; esac; \
		rm -rf fuzz/corpus/$$t.fewest fuzz/corpus/$$t.seeds && mkdir -p fuzz/corpus/$$t fuzz/corpus/$$t.fewest; \
		$(PYTHON) packaging/fuzz_seeds.py unpack fuzz/seeds/$$t.tar.bz2 fuzz/corpus/$$t.seeds; \
		PATH="$(CURDIR)/$(FUZZ)/bin:$$PATH" $(CARGO) +nightly fuzz run -s $$sanitizer $$t -- -set_cover_merge=1 -max_len=$(FUZZ_SEED_BYTES) \
			fuzz/corpus/$$t.fewest fuzz/corpus/$$t.seeds fuzz/corpus/$$t; \
		$(PYTHON) packaging/fuzz_seeds.py pack fuzz/corpus/$$t.fewest fuzz/seeds/$$t.tar.bz2; \
		rm -rf fuzz/corpus/$$t.fewest fuzz/corpus/$$t.seeds; \
	done

# --- a long run -----------------------------------------------------------------------------------------------------

SECONDS  ?= 3600
SOAK_OUT ?= $(CACHE)/soak
$(TARGET)/soak/work: benches/soak/work.c ctests/session.h build
	@mkdir -p $(@D)
	$(CC) -std=c17 -D_GNU_SOURCE -g -O1 -Wall -Wextra -Werror -Iinclude $< -o $@ -L$(TARGET)/release -ltegrarm \
		"-Wl,-rpath,$(CARGO_TARGET_DIR)/release"

soak: build venv $(SIM) $(TARGET)/soak/work ## an hour (SECONDS) of everything at once; fails if memory, descriptors, mappings or threads grow
	$(PY) benches/soak/soak.py --seconds $(SECONDS) --target "$(CARGO_TARGET_DIR)" --out "$(abspath $(SOAK_OUT))"

# So many programs of each family. The two releases are compared at the same time, each on a core of its own.
PROGRAMS ?= 3000
.PHONY: judge-driver test-driver test-driver-library test-driver-suites
judge-driver: # what both comparisons need: the driver as a library, and the judge
	$(MAKE) -j"$$(nproc)" -C judge/nvgpu NVGPU="$(abspath $(NVGPU))" $(if $(NVMAP),NVMAP="$(abspath $(NVMAP))") \
		OUT="$(if $(filter /%,$(TARGET)),,../../)$(TARGET)/judge/r36"
	$(if $(NVGPU_R35),$(MAKE) -j"$$(nproc)" -C judge/nvgpu NVGPU="$(abspath $(NVGPU_R35))" NVMAP= OUT="$(if $(filter /%,$(TARGET)),,../../)$(TARGET)/judge/r35")
	$(CARGO) build --manifest-path judge/Cargo.toml --locked --release --target-dir "$(CARGO_TARGET_DIR)"/judge

JUDGE     = $(TARGET)/judge/release/tegrarm-judge "$(CARGO_TARGET_DIR)/judge/r36/libnvgpu-judge.so" orin
JUDGE_R35 = $(TARGET)/judge/release/tegrarm-judge "$(CARGO_TARGET_DIR)/judge/r35/libnvgpu-judge.so" orin:r35.4
test-driver: judge-driver ## NVIDIA's own driver, built from the checkout that NVGPU names (and NVGPU_R35, and NVMAP), answers the same programs as the simulated kernel
	@status=0; $(if $(NVGPU_R35),$(JUDGE_R35) compare $(PROGRAMS) >"$(CARGO_TARGET_DIR)/judge/r35.txt" 2>&1 & r35=$$!;) \
		$(JUDGE) compare $(PROGRAMS) || status=1; \
		$(if $(NVGPU_R35),wait $$r35 || status=1; cat "$(CARGO_TARGET_DIR)/judge/r35.txt";) exit $$status

# These C programs of ctests run on the virtual Orin and are recorded. Then the driver gets their calls. hostobj makes none, and replay does
# not like to be recorded: it sees that a loop makes no system call.
RECORDED := $(CARGO_TARGET_DIR)/judge/recorded
RECORDED_PROGRAMS := buffers cancel channel errors events profiler queues rm_client runtime syncpoints
test-driver-library: judge-driver build ## the kernel calls of the library's C programs get the same answers from NVIDIA's driver
	rm -rf "$(RECORDED)" && mkdir -p "$(RECORDED)"
	$(MAKE) --no-print-directory -C ctests TEGRARM_BACKEND=sim PROGRAMS="$(RECORDED_PROGRAMS)" \
		RUN='record() { TEGRARM_RECORD="$(RECORDED)/$$$$(basename "$$$$1").jsonl" "$$$$@"; }; record' plain
	@echo "program                   calls  equal left out no reason"; status=0; \
	for recording in "$(RECORDED)"/*.jsonl; do $(JUDGE) perform "$$recording" || status=1; done; exit $$status
	$(MAKE) --no-print-directory test-driver-suites

# The Rust suites of the library that make kernel calls. Each virtual board of a test writes down its calls (tests/common/board.rs); those of r36
# and r35.4 are made on the driver of that release.
SUITES_RECORDED := $(CARGO_TARGET_DIR)/judge/suites
RECORDED_SUITES := bringup objects files buffers conflicts threads profiling
test-driver-suites: judge-driver
	rm -rf "$(SUITES_RECORDED)" && mkdir -p "$(SUITES_RECORDED)"
	TEGRARM_TEST_RECORD="$(SUITES_RECORDED)" $(CARGO) test --locked -p tegrarm $(RECORDED_SUITES:%=--test %)
	@echo "suite            release tests equal   calls   equal left out no reason"; $(JUDGE) suites "$(SUITES_RECORDED)" \
		$(if $(NVGPU_R35),&& $(JUDGE_R35) suites "$(SUITES_RECORDED)")

.PHONY: test-driver-mutants
test-driver-mutants: ## each wrong rule of a list is noticed by the recorded answers of NVIDIA's driver
	CARGO_TARGET_DIR="$(CARGO_TARGET_DIR)" CARGO="$(CARGO)" $(PYTHON) judge/mutants.py
