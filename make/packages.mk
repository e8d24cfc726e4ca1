# What is handed out: installed files, Debian packages, wheels for two architectures, the source distribution.

VERSION   := $(shell sed -n '/^\[workspace.package\]/,/^$$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
SOVERSION := 0
PREFIX    ?= /usr/local
# Below PREFIX; Debian's is lib/x86_64-linux-gnu, for example.
LIBDIR    ?= lib
STRIP     ?= strip
ROOT      := $(DESTDIR)$(PREFIX)
UP        := $(shell echo $(LIBDIR) | sed 's|[^/][^/]*|..|g')
FILL      := sed -e 's/@VERSION@/$(VERSION)/' -e 's/@SOVERSION@/$(SOVERSION)/' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@UP@|$(UP)|'
BASHDIR   := share/bash-completion/completions
ZSHDIR    := share/zsh/site-functions
FISHDIR   := share/fish/vendor_completions.d

install: build $(SIM) stage ## libraries, tegrarm-sim, headers, man pages, completions, pkg-config and CMake files under PREFIX (staged under DESTDIR)
# The same of libraries that are built already. BUILT is where they are.
BUILT     ?= $(dir $(LIB))
.PHONY: stage
stage: $(if $(filter install,$(MAKECMDGOALS)),build $(SIM))
	install -d $(foreach d,bin $(LIBDIR)/pkgconfig $(LIBDIR)/cmake/tegrarm include share/man/man1 $(BASHDIR) $(ZSHDIR) $(FISHDIR),"$(ROOT)/$(d)")
	install -m 755 -s --strip-program=$(STRIP) "$(BUILT)/libtegrarm.so" "$(ROOT)/$(LIBDIR)/libtegrarm.so.$(VERSION)"
	ln -sf libtegrarm.so.$(VERSION) "$(ROOT)/$(LIBDIR)/libtegrarm.so.$(SOVERSION)"
	ln -sf libtegrarm.so.$(SOVERSION) "$(ROOT)/$(LIBDIR)/libtegrarm.so"
	install -m 755 -s --strip-program=$(STRIP) "$(BUILT)/libtegrarm_preload.so" "$(ROOT)/$(LIBDIR)/"
	install -d "$(ROOT)/$(LIBDIR)/tegrarm/nvml"
	install -m 755 -s --strip-program=$(STRIP) "$(BUILT)/libtegrarm_nvml.so" "$(ROOT)/$(LIBDIR)/tegrarm/nvml/libnvidia-ml.so.1"
	install -d "$(ROOT)/$(LIBDIR)/tegrarm/cuda"
	install -m 755 -s --strip-program=$(STRIP) "$(BUILT)/libtegrarm_cuda.so" "$(ROOT)/$(LIBDIR)/tegrarm/cuda/libcuda.so.1"
	for major in 12 13; do install -m 755 -s --strip-program=$(STRIP) "$(BUILT)/tegrarm_cudart$$major" "$(ROOT)/$(LIBDIR)/tegrarm/cuda/libcudart.so.$$major" || exit; done
	install -m 755 -s --strip-program=$(STRIP) "$(BUILT)/tegrarm-sim" "$(ROOT)/bin/"
	install -m 644 include/tegrarm.h include/tegrarm_abi.h include/tegrarm_status.h "$(ROOT)/include/"
	install -m 644 packaging/man/tegrarm-sim*.1 "$(ROOT)/share/man/man1/"
	install -m 644 packaging/completions/tegrarm-sim.bash "$(ROOT)/$(BASHDIR)/tegrarm-sim"
	install -m 644 packaging/completions/_tegrarm-sim "$(ROOT)/$(ZSHDIR)/"
	install -m 644 packaging/completions/tegrarm-sim.fish "$(ROOT)/$(FISHDIR)/"
	$(FILL) packaging/tegrarm.pc.in > "$(ROOT)/$(LIBDIR)/pkgconfig/tegrarm.pc"
	$(FILL) packaging/tegrarm-config.cmake.in > "$(ROOT)/$(LIBDIR)/cmake/tegrarm/tegrarm-config.cmake"
	$(FILL) packaging/tegrarm-config-version.cmake.in > "$(ROOT)/$(LIBDIR)/cmake/tegrarm/tegrarm-config-version.cmake"
	@$(if $(DESTDIR),:,packaging/loader_knows.sh "$(PREFIX)/$(LIBDIR)" libtegrarm.so.$(SOVERSION))

# A Debian source package from what git has, and the packages from it.
.PHONY: deb
deb:              ## dist/: Debian packages libtegrarm0, libtegrarm-dev and tegrarm-sim, built by dpkg-buildpackage
	@$(PYTHON) packaging/needs.py deb > /dev/null
	packaging/debian.sh "$(DIST)" $(VERSION)

# One package of everything for boards, of libraries that load on JetPack 5 and later.
.PHONY: deb-board
deb-board:        ## dist/tegrarm_VERSION_arm64.deb: one file for JetPack 5, 6 and 7, with the udev rule
	@$(PYTHON) packaging/needs.py deb-board > /dev/null
	$(MAKE) --no-print-directory portable-aarch64
	rm -rf $(CACHE)/board
	$(MAKE) --no-print-directory stage BUILT=$(PORTABLE)/$(ARM)/release STRIP=$(ARM_STRIP) DESTDIR="$(WHOLE_CACHE)/board" PREFIX=/usr LIBDIR=lib/aarch64-linux-gnu
	packaging/board_deb.sh $(CACHE)/board $(VERSION) arm64 "$(DIST)"

# The same for a computer, where the virtual Orin runs.
.PHONY: deb-computer
deb-computer:     ## dist/tegrarm_VERSION_amd64.deb: the same for x86_64 and the virtual Orin
	@$(PYTHON) packaging/needs.py deb-computer > /dev/null
	$(MAKE) --no-print-directory portable
	rm -rf $(CACHE)/computer
	$(MAKE) --no-print-directory stage BUILT=$(PORTABLE)/$(X86)/release DESTDIR="$(WHOLE_CACHE)/computer" PREFIX=/usr LIBDIR=lib/x86_64-linux-gnu
	packaging/board_deb.sh $(CACHE)/computer $(VERSION) amd64 "$(DIST)"

# Cross builds: Debian's gcc-aarch64-linux-gnu, and qemu-user-static to run what they make.
ARM      := aarch64-unknown-linux-gnu
ARM_LIBC := /usr/aarch64-linux-gnu
# On a board the tools have no prefix.
ARM_STRIP := $(if $(filter aarch64,$(shell uname -m)),strip,aarch64-linux-gnu-strip)
ARM_RUN  := qemu-aarch64-static -L $(ARM_LIBC)
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER ?= aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER ?= $(ARM_RUN)
ARM_RELEASE := $(TARGET)/$(ARM)/release
DIST     ?= dist

# Libraries that also load on Ubuntu 20.04 (JetPack 5), whatever this machine's glibc is: zig links them against the symbols of that
# version. Everything that is handed out is made in this way. `make build` and `make install` are for this machine only.
GLIBC    := 2.31
ZIG      := $(CACHE)/zig
ZIGBUILD := PATH="$(CURDIR)/$(ZIG)/bin:$$PATH" $(ZIG)/bin/cargo-zigbuild zigbuild --release --locked
X86      := x86_64-unknown-linux-gnu
PORTABLE_PACKAGES := -p tegrarm -p tegrarm-preload -p tegrarm-nvml -p tegrarm-cuda -p tegrarm-cudart -p tegra-sim --lib --bins
PORTABLE := $(TARGET)/portable
WHOLE_PORTABLE := $(CARGO_TARGET_DIR)/portable
# Optimisations take most of the time, and are the same on every glibc. With TEGRARM_QUICKLY, which tests set, the libraries have none, apart
# from the engine: the tests wait for it.
ifdef TEGRARM_QUICKLY
PORTABLE := $(TARGET)/quickly
WHOLE_PORTABLE := $(CARGO_TARGET_DIR)/quickly
ZIGBUILD := CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=0 \
	$(ZIGBUILD) --config profile.release.package.sm87.opt-level=1
endif

$(ZIG)/.installed: packaging/zig-requirements.txt
	$(PYTHON) -m venv $(ZIG)
	$(ZIG)/bin/python -m pip install --quiet --disable-pip-version-check -r packaging/zig-requirements.txt
	@touch $@

.PHONY: portable portable-aarch64
portable: $(ZIG)/.installed ## target/portable: libraries and simulator for x86_64 with glibc 2.31 or later
	CARGO_TARGET_DIR="$(WHOLE_PORTABLE)" $(ZIGBUILD) --target $(X86).$(GLIBC) $(PORTABLE_PACKAGES)
portable-aarch64: $(ZIG)/.installed ## the same for aarch64
	env -u CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER CARGO_TARGET_DIR="$(WHOLE_PORTABLE)" $(ZIGBUILD) --target $(ARM).$(GLIBC) $(PORTABLE_PACKAGES)

.PHONY: arm-build
arm-build:
	$(CARGO) build --release --locked --target $(ARM) -p tegrarm -p tegrarm-preload -p tegrarm-nvml -p tegrarm-cuda -p tegrarm-cudart
	@ln -sf libtegrarm.so $(ARM_RELEASE)/libtegrarm.so.0

# wheel-from,DIRECTORY,STRIP: makes a wheel of the libraries in DIRECTORY, without symbols. Its name has the glibc that they need.
define wheel-from
install -d python/built
install -m 755 -s --strip-program=$(2) $(addprefix $(1)/,$(HANDED_OUT)) python/built/
tag=$$($(PY) packaging/platform_tag.py $(addprefix $(1)/,$(HANDED_OUT))) && TEGRARM_WHEEL_PLATFORM=$$tag \
	$(PY) -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$(DIST)" ./python; \
	made=$$?; rm -rf python/built; exit $$made
endef

wheel: portable venv ## dist/: a wheel with the libraries, for x86_64
	$(call wheel-from,$(PORTABLE)/$(X86)/release,$(STRIP))
wheel-aarch64: portable-aarch64 venv
	$(call wheel-from,$(PORTABLE)/$(ARM)/release,$(ARM_STRIP))
.PHONY: sdist
sdist: venv       ## dist/: a source distribution, whose wheel cargo builds
	$(PY) -c 'import sys; sys.path.insert(0, "."); from hatchling.build import build_sdist; import os; to = os.path.abspath("$(DIST)"); os.chdir("python"); print(build_sdist(to))'
.PHONY: test-sdist
test-sdist: DIST := $(CACHE)/sdist
test-sdist: sdist ## the wheel of the source distribution, built by cargo: minutes, not part of `make test`
	rm -rf $(DIST)/*.whl $(DIST)/unpacked
	CARGO_TARGET_DIR="$(CURDIR)/$(DIST)/target" $(PY) -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir $(DIST) $(DIST)/tegrarm-$(VERSION).tar.gz
	$(PY) -m zipfile -e $(DIST)/*.whl $(DIST)/unpacked
	! readelf -S $(DIST)/unpacked/tegrarm/libtegrarm.so | grep debug_  # a wheel is for whoever installs it
	@ls -l $(DIST)/*.whl
.PHONY: wheels
wheels:           ## dist/: wheels with the libraries, for x86_64 and aarch64; one alone where the other cannot be had
	@set -e; for one in $$($(PYTHON) packaging/needs.py wheel wheel-aarch64); do $(MAKE) --no-print-directory $$one; done
	@test -n "$$(ls "$(DIST)"/*.whl 2> /dev/null)"
