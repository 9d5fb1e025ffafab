# The PTX interpreter: a library that the simulated driver links, and its tests.
LIBRARIES += simptx
simptx_SRC := $(foreach room,program execute execute/async parse decode load,$(wildcard e2e/simcuda/ptx/$(room)/*.c))
# Loops over the lanes become vectors; a * b + c stays two roundings.
simptx_CFLAGS := -O3 -ffp-contract=off -Wno-pass-failed

PTX_TESTS := test-ptx-int test-ptx-float test-ptx-control test-ptx-barrier test-ptx-memory test-ptx-text test-ptx-nvcc test-ptx-async
UNIT_TESTS += $(PTX_TESTS)
define ptx-test
$1_SRC    := e2e/simcuda/tests/$1.c e2e/simcuda/tests/ptx-fixture.c
$1_STATIC := simptx
$1_LIBS   := -lcmocka -lm
endef
$(foreach t,$(PTX_TESTS),$(eval $(call ptx-test,$t)))

# What nvcc emits, for the oldest, the usual and the newest architecture.
PTX_KERNELS := $(GEN)/simcuda/kernels
$(foreach a,75 90 120,$(PTX_KERNELS)-$a.ptx): $(PTX_KERNELS)-%.ptx: e2e/simcuda/tests/ptx-kernels.cu | $(SETUP_STAMP)
	@mkdir -p $(@D)
	$(Q)$(NVCC) -ptx -std=c++17 -arch=compute_$* -o $@ $<
test-ptx-nvcc_CPPFLAGS := -DPTX_KERNELS='"$(PTX_KERNELS)"'
test-ptx-nvcc_DEPS     := $(foreach a,75 90 120,$(PTX_KERNELS)-$a.ptx)

FUZZERS += fuzz-ptx
# Its own copy of the interpreter: the fuzzer wants to see where it goes.
fuzz-ptx_SRC    := e2e/simcuda/tests/fuzz/fuzz-ptx.c $(simptx_SRC)
fuzz-ptx_CFLAGS := $(simptx_CFLAGS)
fuzz-ptx_LIBS   := -lm
