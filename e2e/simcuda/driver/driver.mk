# The simulated driver, in a folder of its own: that is what LD_LIBRARY_PATH or a container's mount point at.
SIMCUDA     := $(B)/simcuda/libcuda.so.1
SIMNVML     := $(B)/simcuda/libnvidia-ml.so.1
SIMCUDA_GEN := $(addprefix $(GEN)/simcuda/,names.inc errors.inc stubs.inc)

SIM_MACHINE_SRC := $(patsubst %,e2e/simcuda/machine/%.c,queue use group server rm rm-call rm-objects rm-client rm-node trap lock open visible)

SHARED += simcuda.so
simcuda.so_SRC := $(wildcard $(addprefix e2e/simcuda/driver/,core/*.c memory/*.c stream/*.c code/*.c graph/*.c)) $(SIM_MACHINE_SRC)
simcuda.so_STATIC   := simptx
simcuda.so_CPPFLAGS := -isystem $(CUDA_HOME)/include
simcuda.so_DEPS     := $(SIMCUDA_GEN)
simcuda.so_LIBS     := -l:liblz4.a -l:libzstd.a -lm
simcuda.so_LDFLAGS  := -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -Wl,-z,nodelete -Wl,--exclude-libs,ALL

$(GEN)/simcuda/names.inc: DO := table
$(GEN)/simcuda/errors.inc: DO := errors
$(GEN)/simcuda/stubs.inc: DO := stubs
$(SIMCUDA_GEN): e2e/simcuda/driver/core/names.sh $(CUDA_HOME)/include/cuda.h
	@mkdir -p $(@D)
	$(Q)CC="$(CC)" $< $(DO) $(CUDA_HOME)/include > $@

# Moved into place: programs that run on the old one keep it.
$(B)/simcuda/libcuda.so.1: $(B)/lib/simcuda.so
	@mkdir -p $(@D)
	$(Q)cp $< $@.new && mv -f $@.new $@

SHARED += simnvml.so
simnvml.so_SRC := $(wildcard e2e/simcuda/nvml/*.c) $(SIM_MACHINE_SRC)
simnvml.so_CPPFLAGS := -isystem $(CUDA_HOME)/include
simnvml.so_LDFLAGS  := -Wl,-soname,libnvidia-ml.so.1 -Wl,-Bsymbolic -Wl,-z,nodelete

$(B)/simcuda/libnvidia-ml.so.1: $(B)/lib/simnvml.so
	@mkdir -p $(@D)
	$(Q)cp $< $@.new && mv -f $@.new $@
EXTRA += $(SIMCUDA) $(SIMNVML)

DRIVER_TESTS := $(addprefix test-driver-,stream gate order dependent priority capture graph memory code builtin machine channels mps)
UNIT_TESTS += $(DRIVER_TESTS)
# They need filters of system calls, children, and memory that is really unmapped.
UNEMULATED += test-driver-channels test-driver-machine test-driver-memory test-driver-mps
define driver-test
$1_SRC      := e2e/simcuda/tests/$1.c
$1_CPPFLAGS := -isystem $$(CUDA_HOME)/include
$1_LDFLAGS  := -Wl,-rpath,$$(abspath $$(B)/simcuda)
$1_LIBS     := -lcmocka -l:liblz4.a -l:libzstd.a
$$(B)/tests/$1: $$(SIMCUDA)
endef
$(B)/tests/test-driver-machine $(B)/tests/test-driver-channels: $(SIMNVML)
$(B)/tests/test-driver-mps: | $(B)/bin/sim-mps-control $(B)/lib/simwatch.so
$(foreach t,$(DRIVER_TESTS),$(eval $(call driver-test,$t)))

# For tests: preloaded into the server of MPS.
SHARED += simwatch.so
simwatch.so_SRC := e2e/simcuda/tests/rm-watch.c

# It looks inside.
UNIT_TESTS += test-machine-lock
test-machine-lock_SRC  := e2e/simcuda/tests/test-machine-lock.c $(SIM_MACHINE_SRC)
test-machine-lock_LIBS := -lcmocka

FUZZERS += fuzz-simfatbin
fuzz-simfatbin_SRC      := e2e/simcuda/tests/fuzz/fuzz-simfatbin.c e2e/simcuda/driver/code/fatbin.c
fuzz-simfatbin_CPPFLAGS := -isystem $(CUDA_HOME)/include
fuzz-simfatbin_LIBS     := -l:liblz4.a -l:libzstd.a
