# One build graph for the whole tree. Each folder's module.mk names its programs, libraries and
# tests; the rules below build them. `make help` lists the targets.
#
#   ARCH=arm64                 built for arm64 by a cross compiler (own build folder)
#   CC=clang-14                another compiler        (gcc by default)
#   SAN=address,undefined      sanitizers              (own build folder)
#   V=1                        show the commands

SHELL       := /bin/bash
.SHELLFLAGS := -eo pipefail -c
.DEFAULT_GOAL := all
# As many jobs as there are processors, unless -j or a make above says otherwise.
MAKEFLAGS   := $(MAKEFLAGS) $(if $(filter-out 0,$(MAKELEVEL)),,-j$(shell nproc))
comma       := ,
VERSION     := 0.1.0

SAN         ?=
CC          := $(if $(filter default,$(origin CC)),gcc,$(CC))
MACHINE     := $(patsubst aarch64,arm64,$(patsubst x86_64,amd64,$(shell uname -m)))
ARCH        ?= $(MACHINE)
B           := build$(if $(filter-out $(MACHINE),$(ARCH)),-$(ARCH))$(if $(filter-out gcc,$(CC)),-$(CC))$(if $(SAN),-$(subst $(comma),-,$(SAN)))
GEN         := $(B)/gen
# The toolkit: an installed one, else the one that `make setup` unpacks from NVIDIA's wheels.
CUDA_HOME   ?= $(firstword $(patsubst %/include/cuda.h,%,$(wildcard /usr/local/cuda/include/cuda.h)) build/cuda)
NVCC        := $(CUDA_HOME)/bin/nvcc
PREFIX      ?= /usr/local
DESTDIR     ?=
Q           := $(if $(V),,@)
export B ARCH CUDA_HOME VERSION LONG_TESTS SERIAL_TESTS

WARN        := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
               -Wwrite-strings -Wvla -Wno-missing-field-initializers
CPPFLAGS    += -D_GNU_SOURCE -DWEIR_VERSION='"$(VERSION)"' -I$(GEN)
CFLAGS      += -std=gnu17 -O2 -g -ffile-prefix-map=$(CURDIR)=. -fPIC -fno-strict-aliasing -fstack-protector-strong -fvisibility=hidden $(WARN) \
               $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
LDFLAGS     += $(if $(SAN),-fsanitize=$(SAN)) -Wl,--as-needed -Wl,-z,relro,-z,now -Wl,-z,defs
INCLUDES    := -Itransformer/include -Iruntime-lib/include

# Another architecture's libraries are in a root folder of their own, and its programs run under qemu.
ifneq ($(ARCH),$(MACHINE))
ifneq ($(ARCH),arm64)
$(error ARCH=$(ARCH): only arm64 is built by a cross compiler)
endif
ROOT        := build/arm64-root
CROSS       := aarch64-linux-gnu-
CC          := $(CROSS)gcc --sysroot=$(CURDIR)/$(ROOT)
export EMULATOR := qemu-aarch64-static -L $(CURDIR)/$(ROOT)
endif
AR          := $(CROSS)ar
NM          := $(CROSS)nm
export ROOT CROSS

# Filled by the modules.
PROGRAMS    :=# NAME            -> $(B)/bin/NAME,      from NAME_SRC, NAME_LIBS, NAME_CPPFLAGS, NAME_CFLAGS
LIBRARIES   :=# NAME            -> $(B)/lib/NAME.a,    from NAME_SRC, NAME_CPPFLAGS, NAME_CFLAGS
SHARED      :=# NAME            -> $(B)/lib/NAME,      from NAME_SRC, NAME_LIBS, NAME_LDFLAGS
UNIT_TESTS  :=# NAME            -> $(B)/tests/NAME,    as PROGRAMS; run by `make test`, each prints TAP or exits 0
UNEMULATED  :=# those of UNIT_TESTS that cannot run under qemu
UNSANITIZED :=# those of UNIT_TESTS that cannot run under sanitizers
SHELL_TESTS :=# path of script  -> run by `make test` with B set
LONG_TESTS  :=# names of tests that take long: the runner starts them first
SERIAL_TESTS :=# names of tests that measure, so nothing may run beside them
FUZZERS     :=# NAME            -> $(B)/fuzz/NAME,     from NAME_SRC; libFuzzer under clang, replayed on a corpus else
BENCHES     :=# NAME            -> $(B)/bench/NAME
EXTRA       :=# other files that `make all` builds

MODULES     := transformer runtime-lib agent deviceplugin e2e
include $(addsuffix /module.mk,$(MODULES))

# A source is compiled once for all that have the same flags: their objects are in a folder with the flags' name.
# $(call objects,NAME): where the objects of NAME's sources are.
space       := $(subst ,, )
flags-of     = $(subst $(CURDIR)/,,$(subst $(GEN),gen,$($1_CPPFLAGS) $($1_CFLAGS)))
flags-name   = $(or $(subst /,+,$(subst $(space),_,$(strip $(subst ",,$(subst ',,$(subst =,-,$(flags-of))))))),plain)
objects      = $(patsubst %,$(B)/obj/$(call flags-name,$1)/%.o,$(basename $($1_SRC)))
COMPILED    :=# flags' names that have rules

# $(call compile-rules,NAME,FLAGS-NAME)
define compile-rules
COMPILED += $2
$(B)/obj/$2/%.o: %.c | $$(SETUP_STAMP)
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(CPPFLAGS) -iquote $$(firstword $$(subst /, ,$$<)) $$($1_CPPFLAGS) $$(INCLUDES) $$(CFLAGS) $$($1_CFLAGS) -MMD -MP -c $$< -o $$@
$(B)/obj/$2/%.o: $(B)/gen/%.c | $$(SETUP_STAMP)
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(CPPFLAGS) -iquote $$(firstword $$(subst /, ,$$<)) $$($1_CPPFLAGS) $$(INCLUDES) $$(CFLAGS) $$($1_CFLAGS) -MMD -MP -c $$< -o $$@
$(B)/obj/$2/%.o: $(B)/gen/%.S | $$(SETUP_STAMP)
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(CPPFLAGS) -iquote $$(firstword $$(subst /, ,$$<)) $$($1_CPPFLAGS) $$(INCLUDES) -c $$< -o $$@
$(B)/obj/$2/%.o: %.S | $$(SETUP_STAMP)
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(CPPFLAGS) -iquote $$(firstword $$(subst /, ,$$<)) $$($1_CPPFLAGS) $$(INCLUDES) -c $$< -o $$@
endef

define object-rules
$(if $(filter $(call flags-name,$1),$(COMPILED)),,$(call compile-rules,$1,$(call flags-name,$1)))
$$(call objects,$1): $$($1_DEPS)
-include $$(patsubst %.o,%.d,$$(call objects,$1))
endef

# $(call program-rules,NAME,FOLDER)
define program-rules
$(call object-rules,$1)
$(B)/$2/$1: $$(call objects,$1) $$(patsubst %,$(B)/lib/%.a,$$($1_STATIC))
	@mkdir -p $$(@D)
	@echo "  LD      $$@"
	$$(Q)$$(CC) $$(CFLAGS) $$($1_CFLAGS) $$(LDFLAGS) $$($1_LDFLAGS) -o $$@ $$^ $$($1_LIBS) -lpthread
endef

define library-rules
$(call object-rules,$1)
$(B)/lib/$1.a: $$(call objects,$1)
	@mkdir -p $$(@D)
	@echo "  AR      $$@"
	$$(Q)rm -f $$@ && $$(AR) rcs $$@ $$^
endef

define shared-rules
$(call object-rules,$1)
$(B)/lib/$1: $$(call objects,$1) $$(patsubst %,$(B)/lib/%.a,$$($1_STATIC)) $$($1_LINKDEPS)
	@mkdir -p $$(@D)
	@echo "  LD      $$@"
	$$(Q)$$(CC) -shared $$(CFLAGS) $$($1_CFLAGS) $$(LDFLAGS) $$($1_LDFLAGS) -o $$@ $$(filter %.o %.a,$$^) $$($1_LIBS) -lpthread
endef

SETUP_STAMP := build/.setup$(if $(ROOT),-arm64)
$(foreach n,$(PROGRAMS),$(eval $(call program-rules,$n,bin)))
$(foreach n,$(UNIT_TESTS),$(eval $(call program-rules,$n,tests)))
$(foreach n,$(BENCHES),$(eval $(call program-rules,$n,bench)))
$(foreach n,$(FUZZERS),$(eval $n_CFLAGS += $(if $(findstring clang,$(CC)),-fsanitize=fuzzer)))
$(foreach n,$(FUZZERS),$(eval $n_SRC += $(if $(findstring clang,$(CC)),,e2e/robustness/fuzz/replay.c)))
$(foreach n,$(FUZZERS),$(eval $(call program-rules,$n,fuzz)))
$(foreach n,$(LIBRARIES),$(eval $(call library-rules,$n)))
$(foreach n,$(SHARED),$(eval $(call shared-rules,$n)))

ALL := $(PROGRAMS:%=$(B)/bin/%) $(SHARED:%=$(B)/lib/%) $(EXTRA)
TEST_BINARIES := $(UNIT_TESTS:%=$(B)/tests/%) $(FUZZERS:%=$(B)/fuzz/%) $(BENCHES:%=$(B)/bench/%)

##@ Everyday
help: ## this list
	@awk '/^##@/{printf "\n%s\n", substr($$0, 5)} /^[a-z][a-z0-9-]*:.*## /{split($$0, a, ":.*## "); printf "  make %-14s %s\n", a[1], a[2]}' $(filter Makefile %.mk,$(MAKEFILE_LIST))

all: $(ALL) ## build everything

setup: $(SETUP_STAMP) ## install what the build needs (Debian, Ubuntu) and the CUDA toolkit into build/
build/.setup: e2e/setup.sh
	$(Q)e2e/setup.sh
	@mkdir -p $(@D) && : > $@
build/.setup-arm64: e2e/setup-arm64.sh build/.setup
	$(Q)e2e/setup-arm64.sh && : > $@
# Read as a (empty) makefile, so that whatever is built, set-up ends before anything else begins.
ifneq ($(filter-out help clean format,$(or $(MAKECMDGOALS),all)),)
include $(SETUP_STAMP)
endif

DEMO := $(addprefix $(B)/,$(addprefix bin/,weir-agent weirctl weir-compile burst filler) lib/libweir.so \
        simcuda/libcuda.so.1)
demo: $(DEMO) ## two clients of different priority share the GPU; a table shows what preemption did
	$(Q)e2e/demo/demo.sh

# What runs under sanitizers as well: unit tests and fuzz corpora, in a build of their own.
SAN_B := build-address-undefined
# Libraries for arm64 come from Debian's own sources. On other distributions these tests are left out.
ARM64_B := $(if $(filter amd64-debian,$(MACHINE)-$(shell . /etc/os-release && echo $$ID)),build-arm64)
ARM64_TESTS := $(patsubst %,$(ARM64_B)/tests/%,$(if $(ARM64_B),$(filter-out $(UNEMULATED),$(LIBWEIR_TESTS))))
TEST_SCRIPTS := $(filter-out $(if $(ARM64_B),,$(ARM64_SHELL_TESTS)),$(SHELL_TESTS))
test: all check-binaries ## all tests, the real-kubelet cases included; ends with `N passed, N failed`
	$(Q)$(MAKE) -s --no-print-directory SAN=address,undefined check-binaries
	$(if $(ARM64_B),$(Q)$(MAKE) -s --no-print-directory ARCH=arm64 shipped $(ARM64_TESTS))
	$(Q)e2e/run-tests.sh $(UNIT_TESTS:%=unit:$(B)/tests/%) $(ARM64_TESTS:%=unit:%) \
		$(patsubst %,unit:$(SAN_B)/tests/%,$(filter-out $(UNSANITIZED),$(UNIT_TESTS))) $(FUZZERS:%=fuzz:$(SAN_B)/fuzz/%) $(TEST_SCRIPTS:%=shell:%)

fuzz: $(SETUP_STAMP) ## real fuzzing with libFuzzer, FUZZ_SECONDS=60 for each target
	$(Q)$(MAKE) -s --no-print-directory CC=clang-14 SAN=address,undefined fuzz-binaries
	$(Q)FUZZ_SECONDS=$${FUZZ_SECONDS:-60} e2e/run-tests.sh $(FUZZERS:%=fuzz:build-clang-14-address-undefined/fuzz/%)
fuzz-binaries: $(FUZZERS:%=$(B)/fuzz/%)

check: all check-binaries ## unit tests and fuzz corpora only (try SAN=address,undefined)
	$(Q)e2e/run-tests.sh $(UNIT_TESTS:%=unit:$(B)/tests/%) $(FUZZERS:%=fuzz:$(B)/fuzz/%)

check-binaries: $(TEST_BINARIES)

test-arm64: ## unit tests for arm64 under qemu, except those that need what it cannot do (ARCH=arm64 make ... builds)
	$(Q)$(MAKE) -s --no-print-directory ARCH=arm64 check-emulated
check-emulated: shipped $(patsubst %,$(B)/tests/%,$(filter-out $(UNEMULATED),$(UNIT_TESTS)))
	$(Q)B=$(B) e2e/arm64.sh && e2e/run-tests.sh $(patsubst %,unit:$(B)/tests/%,$(filter-out $(UNEMULATED),$(UNIT_TESTS)))

soak: all check-binaries build/kubelet-binaries ## kill tests at length, then DURATION=1800 s of chaos on a node of GPUS=8 and PODS=64
	$(Q)ROUNDS=1000 e2e/robustness/kill.sh
	$(Q)KILLS=10000 e2e/robustness/memory.sh
	$(Q)DURATION=$${DURATION:-1800} GPUS=$${GPUS:-8} PODS=$${PODS:-64} HOSTILES=$${HOSTILES:-5} e2e/robustness/soak/soak.sh

bench: all check-binaries build/kubelet-binaries ## what the agent costs, how soon it decides, how long pods take to be admitted; with bounds
	$(Q)e2e/bench/run node --deadline 3600

lint: all check-binaries ## format, clang-tidy, cppcheck, codespell, shellcheck, who may include whom, retired words, RESULTS.md
	$(Q)e2e/lint/lint.sh

format: ## clang-format over all of our C
	$(Q)git ls-files '*.c' '*.h' | xargs clang-format-14 -i

##@ Ship
bundle: all check-binaries ## build/weir-VERSION-ARCH.tar.gz: programs with the libraries they need, relocatable
	$(Q)+e2e/bundle.sh

cluster-bundle: all $(B)/bench/worker ## build/weir-cluster-VERSION-ARCH.tar.xz: a whole node for `e2e/bench/run cluster`, for machines without a network
	$(Q)e2e/cluster-bundle.sh

SHIPPED_PROGRAMS := $(addprefix $(B)/bin/,weir-agent weir-compile weir-mps weir-selftest weirctl weir-device-plugin)
SHIPPED_LIBRARIES := $(addprefix $(B)/lib/,libweir.so libweir-nvml.so libweir-mps.so)
shipped: $(SHIPPED_PROGRAMS) $(SHIPPED_LIBRARIES)

images: shipped $(B)/bin/burst $(B)/bin/filler ## build/images/*.tar: the images of deploy/Dockerfile and of the quick start's pods, without a container engine or a registry
	$(Q)deploy/images.sh

release: shipped ## build/release/weir-VERSION: images, chart, SBOM, checksums; signed with KEY=FILE (deploy/release.sh)
	$(Q)$(MAKE) -s --no-print-directory ARCH=arm64 shipped
	$(Q)deploy/release.sh

reproduce: $(SETUP_STAMP) ## two releases of the current commit, built in different folders, are the same
	$(Q)deploy/reproduce.sh

DEVELOPERS_PROGRAMS := $(addprefix $(B)/bin/,weir-sim weir-transform)
install: shipped $(DEVELOPERS_PROGRAMS) install-development ## into $(DESTDIR)$(PREFIX)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/weir/$(VERSION)
	install -m 755 $(SHIPPED_PROGRAMS) $(DEVELOPERS_PROGRAMS) $(DESTDIR)$(PREFIX)/bin
	install -m 644 $(SHIPPED_LIBRARIES) $(DESTDIR)$(PREFIX)/lib/weir/$(VERSION)

install-development: $(B)/lib/libweir-loop.a # what programs that know about Weir are compiled with
	install -d $(DESTDIR)$(PREFIX)/lib $(DESTDIR)$(PREFIX)/include/weir/loop
	install -m 644 runtime-lib/include/weir/weir.h runtime-lib/include/weir/loop.h runtime-lib/include/weir/loop.cuh \
		runtime-lib/include/weir/loop-abi.h $(DESTDIR)$(PREFIX)/include/weir
	install -m 644 runtime-lib/include/weir/loop/*.cuh $(DESTDIR)$(PREFIX)/include/weir/loop
	install -m 644 $(B)/lib/libweir-loop.a $(DESTDIR)$(PREFIX)/lib

clean: ## remove the build folders (the CUDA toolkit in build/cuda stays; `rm -rf build*` removes all)
	rm -rf build-* build/bin build/lib build/obj build/gen build/tests build/fuzz build/bench build/programs build/simprograms

.PHONY: all help setup demo test test-arm64 check-emulated shipped check check-binaries fuzz fuzz-binaries soak bench lint format bundle cluster-bundle images release reproduce install install-development clean
.DELETE_ON_ERROR:
