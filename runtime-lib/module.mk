# Linked into every program.
LIBRARIES += base
base_SRC := runtime-lib/base/channel-group.c runtime-lib/base/error.c runtime-lib/base/file.c runtime-lib/base/log.c runtime-lib/base/protocol.c

# The library in the tenant's process. Its SONAME is the driver's.
SHARED += libweir.so
libweir.so_SRC := $(wildcard $(patsubst %,runtime-lib/%/*.c,shim client measure gates preempt autotune launch memory entry)) forward.S
# Objects of the compile service are checked by their maker's own rules.
libweir.so_SRC      += transformer/image/object-check.c
# How much memory the variables of an image take.
libweir.so_SRC      += $(patsubst %,transformer/%.c,image/variables image/fatbin syntax/lex syntax/diag)
libweir.so_LIBS     := $(TRANSFORM_LIBS)
# What it needs of base is compiled here as well, bound to an old glibc like the rest.
libweir.so_SRC      += $(base_SRC)
libweir.so_CPPFLAGS := -isystem $(CUDA_HOME)/include
libweir.so_CFLAGS   := $(if $(SAN),,-include runtime-lib/shim/libc-compat.h) -ftls-model=initial-exec -Wno-deprecated-declarations
libweir.so_DEPS     := $(GEN)/forward-names.inc
# Its threads would run on in what dlclose() takes away.
libweir.so_LDFLAGS  := -Wl,-soname,libcuda.so.1 -Wl,-z,nodelete -Wl,--exclude-libs,ALL

$(GEN)/driver-symbols.txt: runtime-lib/gen-forward.sh runtime-lib/driver-exports.txt $(CUDA_HOME)/include/cuda.h
	@mkdir -p $(@D)
	$(Q)runtime-lib/gen-forward.sh symbols $(CUDA_HOME)/include > $@
$(GEN)/forward.S: $(GEN)/driver-symbols.txt runtime-lib/hooks.def runtime-lib/gen-forward.sh runtime-lib/forward-head.S
	$(Q)runtime-lib/gen-forward.sh assembly $< runtime-lib/hooks.def > $@
$(GEN)/forward-names.inc: $(GEN)/driver-symbols.txt runtime-lib/hooks.def runtime-lib/gen-forward.sh
	$(Q)runtime-lib/gen-forward.sh names $< runtime-lib/hooks.def > $@
$(CUDA_HOME)/include/cuda.h: | $(SETUP_STAMP)

# The same before NVML, for nvidia-smi and the like: a library of its own, because it has a SONAME of its own.
SHARED += libweir-nvml.so
libweir-nvml.so_SRC      := $(wildcard runtime-lib/nvml/*.c) $(patsubst %,runtime-lib/%.c,shim/connect memory/memory-account \
	shim/shim shim/weak-libc shim/loader-cache shim/search) nvml-forward.S $(base_SRC)
libweir-nvml.so_CPPFLAGS := $(libweir.so_CPPFLAGS)
libweir-nvml.so_CFLAGS   := $(libweir.so_CFLAGS)
libweir-nvml.so_DEPS     := $(GEN)/nvml-forward-names.inc
libweir-nvml.so_LDFLAGS  := -Wl,-soname,libnvidia-ml.so.1 -Wl,--exclude-libs,ALL

# Preloaded into MPS servers.
SHARED += libweir-mps.so
libweir-mps.so_SRC     := runtime-lib/mps/mps.c $(patsubst %,runtime-lib/shim/%.c,ioctl thread weak-libc) $(base_SRC)
# Preloaded into programs that bring sanitizers of their own.
libweir-mps.so_CFLAGS  := $(libweir.so_CFLAGS) $(if $(SAN),-fno-sanitize=all)
libweir-mps.so_LDFLAGS := -Wl,--exclude-libs,ALL $(if $(SAN),-fno-sanitize=all)
UNIT_TESTS += test-mps-library
test-mps-library_SRC     := runtime-lib/tests/test-mps-library.c $(filter-out $(base_SRC),$(libweir-mps.so_SRC))
test-mps-library_STATIC  := base
test-mps-library_LIBS    := -lcmocka -ldl
test-mps-library_LDFLAGS := -Wl,--wrap=channel_group_is_device,--wrap=channel_group_stop,--wrap=channel_group_set_slice

$(GEN)/nvml-symbols.txt: runtime-lib/gen-forward.sh runtime-lib/nvml-exports.txt $(CUDA_HOME)/include/cuda.h
	@mkdir -p $(@D)
	$(Q)runtime-lib/gen-forward.sh nvml-symbols $(CUDA_HOME)/include > $@
$(GEN)/nvml-forward.S: $(GEN)/nvml-symbols.txt runtime-lib/nvml-hooks.def runtime-lib/gen-forward.sh runtime-lib/forward-head.S
	$(Q)runtime-lib/gen-forward.sh assembly $< runtime-lib/nvml-hooks.def > $@
$(GEN)/nvml-forward-names.inc: $(GEN)/nvml-symbols.txt runtime-lib/nvml-hooks.def runtime-lib/gen-forward.sh
	$(Q)runtime-lib/gen-forward.sh names $< runtime-lib/nvml-hooks.def > $@

# Whether hardware preemption works on a GPU; the agent runs it.
PROGRAMS += weir-selftest
weir-selftest_SRC      := runtime-lib/selftest/weir-selftest.c $(patsubst %,runtime-lib/shim/%.c,ioctl weak-libc)
weir-selftest_STATIC   := base
weir-selftest_CPPFLAGS := -isystem $(CUDA_HOME)/include
# The driver must find its ioctl.
weir-selftest_LDFLAGS  := -Wl,--export-dynamic-symbol=ioctl
weir-selftest_LIBS     := -ldl

# The host side of loops on the GPU (weir/loop.h), for programs: C, liburing and libcuda alone.
LIBRARIES += libweir-loop
libweir-loop_SRC      := $(wildcard runtime-lib/loop/*.c)
libweir-loop_CPPFLAGS := -isystem $(CUDA_HOME)/include
LOOP_LIBS := -luring -ldl
UNIT_TESTS += test-gpu-loop-rings test-gpu-loop-stay test-gpu-loop-carveout test-gpu-loop-io test-gpu-loop-workers test-gpu-loop-launches test-gpu-loop-staging test-gpu-loop-transfer
test-gpu-loop-launches_SRC      := runtime-lib/tests/test-gpu-loop-launches.c runtime-lib/loop/launches.c
test-gpu-loop-launches_CPPFLAGS := -isystem $(CUDA_HOME)/include
test-gpu-loop-launches_LIBS     := -lcmocka
test-gpu-loop-stay_SRC  := runtime-lib/tests/test-gpu-loop-stay.c
test-gpu-loop-stay_LIBS := -lcmocka
test-gpu-loop-carveout_SRC  := runtime-lib/tests/test-gpu-loop-carveout.c
test-gpu-loop-carveout_LIBS := -lcmocka
test-gpu-loop-rings_SRC  := runtime-lib/tests/test-gpu-loop-rings.c runtime-lib/loop/rings.c
test-gpu-loop-rings_LIBS := -lcmocka
test-gpu-loop-staging_SRC      := runtime-lib/tests/test-gpu-loop-staging.c runtime-lib/tests/fake-copies.c $(patsubst %,runtime-lib/loop/%.c,copies staging)
test-gpu-loop-staging_CPPFLAGS := -isystem $(CUDA_HOME)/include
test-gpu-loop-staging_LIBS     := -lcmocka
test-gpu-loop-transfer_SRC      := runtime-lib/tests/test-gpu-loop-transfer.c runtime-lib/tests/fake-copies.c $(patsubst %,runtime-lib/loop/%.c,transfer copies staging rings)
test-gpu-loop-transfer_CPPFLAGS := -isystem $(CUDA_HOME)/include
test-gpu-loop-transfer_LIBS     := -lcmocka
test-gpu-loop-io_SRC  := runtime-lib/tests/test-gpu-loop-io.c $(patsubst %,runtime-lib/loop/%.c,io-uring io-pool workers receive-buffers)
test-gpu-loop-io_LIBS := -luring -lcmocka
UNEMULATED += test-gpu-loop-io test-gpu-loop-workers
test-gpu-loop-workers_SRC  := runtime-lib/tests/test-gpu-loop-workers.c runtime-lib/loop/workers.c
test-gpu-loop-workers_LIBS := -lcmocka
# Against NVIDIA's header and library, where they are.
UNIT_TESTS += test-gpu-loop-cufile
test-gpu-loop-cufile_SRC      := runtime-lib/tests/test-gpu-loop-cufile.c runtime-lib/loop/cufile.c
test-gpu-loop-cufile_CPPFLAGS := -isystem $(CUDA_HOME)/include -DTOOLKIT='"$(CUDA_HOME)"'
test-gpu-loop-cufile_LIBS     := -lcmocka -ldl
UNEMULATED += test-gpu-loop-cufile
FUZZERS += fuzz-gpu-loop
fuzz-gpu-loop_SRC := $(patsubst %,runtime-lib/%.c,tests/fuzz/fuzz-gpu-loop loop/rings loop/address)
EXTRA += $(B)/lib/libweir-loop.a

# Tests run on a driver that only counts; programs find libweir by its SONAME, as they would anywhere.
NULL_DRIVER := $(B)/null/libcuda.so.1
GUEST       := $(B)/guest/libcuda.so.1
$(GUEST): $(B)/lib/libweir.so
	@mkdir -p $(@D)
	$(Q)ln -sf $(abspath $<) $@
NULL_OBJECTS := $(GEN)/null-driver.o $(GEN)/null-driver-code.o
$(NULL_OBJECTS): $(GEN)/%.o: runtime-lib/tests/%.c runtime-lib/tests/null-driver.h $(CUDA_HOME)/include/cuda.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -isystem $(CUDA_HOME)/include -std=gnu17 -O1 -g -fPIC -w -c $< -o $@
$(NULL_DRIVER): $(NULL_OBJECTS) $(GEN)/driver-symbols.txt
	@mkdir -p $(@D)
	@# What they do not define answers success.
	$(Q)$(NM) $(NULL_OBJECTS) | sed -n 's/.* T //p' | LC_ALL=C sort > $(GEN)/null-defined.txt
	$(Q)LC_ALL=C comm -23 $(GEN)/driver-symbols.txt $(GEN)/null-defined.txt | \
		sed 's/.*/int &(void){return 0;}/' > $(GEN)/null-rest.c
	$(Q)$(CC) -w -fPIC -shared -Wl,-soname,libcuda.so.1 -o $@ $(NULL_OBJECTS) $(GEN)/null-rest.c

UNIT_TESTS += test-protocol test-file test-launch-path
# It counts calls of malloc, which a sanitizer brings with it.
UNSANITIZED += test-launch-path
# qemu knows no filters of system calls, cannot execute programs, has SIGRTMAX for itself, and 65536 threads take too long.
UNEMULATED += test-launch-path test-guest-pipes test-function-end test-thread test-stream
test-protocol_SRC    := runtime-lib/tests/test-protocol.c
test-protocol_STATIC := base
test-protocol_LIBS   := -lcmocka
test-file_SRC    := runtime-lib/tests/test-file.c
test-file_STATIC := base
test-file_LIBS   := -lcmocka
GUEST_TESTS := test-guest test-guest-pipes test-guest-queue test-guest-capture test-guest-gates test-guest-progress test-guest-priority \
               test-guest-levels test-guest-rates
UNIT_TESTS += $(GUEST_TESTS)
define guest-settings
$1_SRC      := $(addprefix runtime-lib/tests/,$1.c guest.c fake-agent.c)
$1_STATIC   := base
$1_CPPFLAGS := -isystem $(CUDA_HOME)/include -DNULL_DRIVER='"$(abspath $(NULL_DRIVER))"'
$1_LIBS     := $(GUEST) -Wl,-rpath,$(abspath $(B)/guest) -lcmocka -ldl
$(B)/tests/$1: | $(GUEST)
endef
$(foreach t,$(GUEST_TESTS),$(eval $(call guest-settings,$t)))
UNIT_TESTS += test-predict-ridge
test-predict-ridge_SRC      := runtime-lib/tests/test-predict-ridge.c runtime-lib/measure/predict-ridge.c
test-predict-ridge_LIBS     := -lcmocka -lm
UNIT_TESTS += test-need-trial
test-need-trial_SRC      := runtime-lib/tests/test-need-trial.c runtime-lib/gates/need-trial.c
test-need-trial_LIBS     := -lcmocka
UNIT_TESTS += test-need-probe
test-need-probe_SRC      := runtime-lib/tests/test-need-probe.c runtime-lib/gates/need-probe.c runtime-lib/gates/need-compare.c
test-need-probe_LIBS     := -lcmocka
UNIT_TESTS += test-busy-period
test-busy-period_SRC  := runtime-lib/tests/test-busy-period.c runtime-lib/gates/busy-period.c
test-busy-period_LIBS := -lcmocka
# All of libweir's objects once more, for the tests that look inside.
LIBRARIES += weir-inside
weir-inside_SRC      := $(libweir.so_SRC)
weir-inside_CPPFLAGS := $(libweir.so_CPPFLAGS)
weir-inside_CFLAGS   := -Wno-deprecated-declarations
weir-inside_DEPS     := $(GEN)/forward-names.inc
# Kernels that have forms.
FORMED_TESTS := test-first-launch test-preempt test-preempt-chains test-preempt-spatial test-preempt-workers test-preempt-dependent \
                test-autotune test-autotune-waiting test-autotune-same-level test-autotune-length test-autotune-max-blocking-time
INSIDE_TESTS := test-ahead test-gates-beside test-loops test-overrun test-channel-groups test-expect test-expect-later test-stream-level \
                test-stream test-thread test-memory-limit test-memory-context test-memory-agent test-memory-wait test-memory-code \
                test-function test-function-answers test-function-origin test-function-end test-launch-path test-predict $(FORMED_TESTS) \
                test-demand test-demand-pages test-demand-pages-change test-need-choice test-need-auto test-graph test-level-change test-profile
UNIT_TESTS += $(filter-out $(UNIT_TESTS),$(INSIDE_TESTS))
define inside-settings
$1_SRC      := runtime-lib/tests/$1.c runtime-lib/tests/fake-agent.c
$1_STATIC   := weir-inside
$1_CPPFLAGS := $(libweir.so_CPPFLAGS) -DNULL_DRIVER='"$(abspath $(NULL_DRIVER))"'
$1_CFLAGS   := -Wno-deprecated-declarations
$1_DEPS     := $(GEN)/forward-names.inc
$1_LIBS     := $(TRANSFORM_LIBS) -lcmocka -ldl
endef
$(foreach t,$(INSIDE_TESTS),$(eval $(call inside-settings,$t)))
$(foreach t,limit context agent wait code,$(eval test-memory-$t_SRC += runtime-lib/tests/limited.c))
test-memory-agent_LDFLAGS := -Wl,--wrap=nanosleep,--wrap=clock_gettime
test-demand_LDFLAGS := -Wl,--wrap=worker_wake -Wl,--wrap=worker_hurry
test-autotune-length_LDFLAGS := -Wl,--wrap=client_now
$(foreach t,test-ahead test-profile $(filter test-function%,$(INSIDE_TESTS)),$(eval $t_SRC += runtime-lib/tests/inside.c runtime-lib/tests/wanted.c))
test-profile_SRC += runtime-lib/tests/formed.c
$(foreach t,$(FORMED_TESTS),$(eval $t_SRC += runtime-lib/tests/inside.c runtime-lib/tests/formed.c))
$(foreach t,test-expect test-expect-later,$(eval $t_SRC += runtime-lib/tests/inside.c runtime-lib/tests/hinted.c))
$(foreach t,test-channel-groups test-gates-beside test-loops test-overrun test-stream-level test-demand test-demand-pages test-demand-pages-change test-need-choice test-need-auto test-graph test-level-change test-stream test-thread,$(eval $t_SRC += runtime-lib/tests/inside.c))
$(foreach t,test-demand-pages test-demand-pages-change test-need-choice test-need-auto test-graph,$(eval $t_SRC += runtime-lib/tests/needing.c))
$(foreach t,test-demand test-demand-pages-change,$(eval $t_SRC += runtime-lib/tests/catch.c))
# Without the rest of libweir: the autotuner is pure.
AUTOTUNER_TESTS := test-autotune-core test-autotune-trace test-autotune-profile
UNIT_TESTS += $(AUTOTUNER_TESTS)
$(foreach t,$(AUTOTUNER_TESTS),$(eval $t_SRC    := runtime-lib/tests/$t.c $(wildcard runtime-lib/autotune/*.c)))
$(foreach t,$(AUTOTUNER_TESTS),$(eval $t_STATIC := base))
$(foreach t,$(AUTOTUNER_TESTS),$(eval $t_LIBS   := -lcmocka -lm))
UNIT_TESTS += test-image
test-image_SRC      := runtime-lib/tests/test-image.c runtime-lib/preempt/image.c
test-image_STATIC   := base
test-image_LIBS     := -lcmocka
LIBWEIR_TESTS := test-protocol test-file test-mps-library test-predict-ridge test-need-trial test-need-probe test-busy-period $(AUTOTUNER_TESTS) test-image \
                 $(GUEST_TESTS) $(INSIDE_TESTS)
$(INSIDE_TESTS:%=$(B)/tests/%) $(GUEST_TESTS:%=$(B)/tests/%): | $(NULL_DRIVER)

FUZZERS += fuzz-protocol fuzz-link fuzz-image fuzz-loader-cache
fuzz-protocol_SRC    := runtime-lib/tests/fuzz/fuzz-protocol.c
fuzz-protocol_STATIC := base
fuzz-link_SRC      := $(patsubst %,runtime-lib/%.c,tests/fuzz/fuzz-link shim/connect shim/ioctl client/channels client/pipes client/level-binding client/link client/request client/lesson shim/weak-libc shim/thread)
fuzz-link_STATIC   := base
fuzz-link_CPPFLAGS := -isystem $(CUDA_HOME)/include
fuzz-image_SRC      := runtime-lib/tests/fuzz/fuzz-image.c runtime-lib/preempt/image.c runtime-lib/base/file.c
fuzz-image_STATIC   := base
fuzz-loader-cache_SRC      := runtime-lib/tests/fuzz/fuzz-loader-cache.c runtime-lib/shim/loader-cache.c

SHELL_TESTS += runtime-lib/tests/symbols.sh
