# Loops on the simulated GPU: weir/loop.cuh compiled by nvcc, files and sockets for real.
LOOP_GEN := $(GEN)/e2e/loop
LOOP_DEVICE := runtime-lib/include/weir/loop.cuh runtime-lib/include/weir/loop-abi.h
$(LOOP_GEN)/%.ptx: e2e/loop/%.cu $(LOOP_DEVICE)
	@mkdir -p $(@D)
	@echo "  NVCC    $@"
	$(Q)$(NVCC) -std=c++17 -ptx -arch=compute_75 -Iruntime-lib/include -o $@ $<

LOOP_TESTS := test-gpu-loop test-gpu-loop-net
UNIT_TESTS += $(LOOP_TESTS)
define loop-test
$1_SRC      := e2e/loop/$1.c e2e/loop/fixture.c
$1_STATIC   := libweir-loop
$1_CPPFLAGS := -isystem $$(CUDA_HOME)/include -DLOOP_KERNELS='"$$(abspath $$(LOOP_GEN)/kernels.ptx)"'
$1_LDFLAGS  := -Wl,-rpath,$$(abspath $$(B)/simcuda)
$1_LIBS     := $(LOOP_LIBS) -lcmocka
$$(B)/tests/$1: $$(B)/simcuda/libcuda.so.1 | $$(LOOP_GEN)/kernels.ptx
endef
$(foreach t,$(LOOP_TESTS),$(eval $(call loop-test,$t)))
