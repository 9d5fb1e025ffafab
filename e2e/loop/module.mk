# Loops on the simulated GPU: weir/loop.cuh compiled by nvcc, files and sockets for real.
LOOP_GEN := $(GEN)/e2e/loop
LOOP_DEVICE := $(addprefix runtime-lib/include/weir/,loop.cuh loop-abi.h) $(wildcard runtime-lib/include/weir/loop/*.cuh)
$(LOOP_GEN)/%.ptx: e2e/loop/%.cu $(wildcard e2e/loop/kernels/*.cuh) $(LOOP_DEVICE)
	@mkdir -p $(@D)
	@echo "  NVCC    $@"
	$(Q)$(NVCC) -std=c++17 -ptx -arch=compute_75 -Iruntime-lib/include -o $@ $<

# A client that runs one of them.
PROGRAMS += loop-runner
loop-runner_SRC      := e2e/loop/loop-runner.c e2e/workloads/workload.c $(GEN)/e2e/loop/kernels-ptx.c
loop-runner_CPPFLAGS := -I$(CUDA_HOME)/include -Ie2e/workloads
loop-runner_STATIC   := libweir-loop
loop-runner_LIBS     := $(LOOP_LIBS)
$(B)/bin/loop-runner: $(B)/simcuda/libcuda.so.1
$(LOOP_GEN)/kernels-ptx.c: $(LOOP_GEN)/kernels.ptx
	$(Q){ echo 'extern const char kernels_ptx[];'; echo 'const char kernels_ptx[] = {'; \
		od -An -v -td1 $< | sed 's/ *\(-*[0-9][0-9]*\)/\1,/g'; echo '0};'; } > $@
SHELL_TESTS += $(patsubst %,e2e/loop/%.sh,guide loops overruns policies siblings turns architectures)

# Stands in for NVIDIA's libcufile.
SHARED += cufile-by-pread.so
cufile-by-pread.so_SRC      := e2e/loop/cufile-by-pread.c
cufile-by-pread.so_CPPFLAGS := -isystem $(CUDA_HOME)/include -iquote runtime-lib
cufile-by-pread.so_LDFLAGS  := -Wl,-z,undefs

LOOP_TESTS := test-gpu-loop test-gpu-loop-net test-gpu-loop-reads test-gpu-loop-faults test-gpu-loop-leaving
UNIT_TESTS += $(LOOP_TESTS)
# They execute programs, and O_DIRECT is another number there.
UNEMULATED += $(LOOP_TESTS)
loop-kernels = $(LOOP_GEN)/$(if $(filter test-gpu-loop-leaving,$1),leaving,kernels).ptx
define loop-test
$1_SRC      := e2e/loop/$1.c e2e/loop/fixture.c
$1_STATIC   := libweir-loop
$1_CPPFLAGS := -iquote runtime-lib -isystem $$(CUDA_HOME)/include -DLOOP_KERNELS='"$$(abspath $(loop-kernels))"' \
               -DLOOP_RUNNER='"$$(abspath $$(B)/bin/loop-runner)"' -DCUFILE='"$$(abspath $$(B)/lib/cufile-by-pread.so)"' -DSIM_FOLDER='"$$(abspath $$(B)/simcuda)"'
$1_LDFLAGS  := -Wl,-rpath,$$(abspath $$(B)/simcuda)
$1_LIBS     := $(LOOP_LIBS) -lcmocka
$$(B)/tests/$1: $$(B)/simcuda/libcuda.so.1 | $(loop-kernels) $$(B)/bin/loop-runner $$(B)/lib/cufile-by-pread.so
endef
$(foreach t,$(LOOP_TESTS),$(eval $(call loop-test,$t)))
test-gpu-loop-faults_SRC      += e2e/workloads/loop/sockets.c
test-gpu-loop-faults_CPPFLAGS += -iquote e2e

# The device side alone, on the interpreter: no driver, no host side.
ONE_BLOCK_TESTS := test-gpu-loop-path test-gpu-loop-returns
UNIT_TESTS += $(ONE_BLOCK_TESTS)
$(foreach t,$(ONE_BLOCK_TESTS),$(eval $t_SRC      := e2e/loop/$t.c e2e/loop/one-block.c e2e/simcuda/tests/ptx-fixture.c)\
	$(eval $t_STATIC   := simptx)\
	$(eval $t_CPPFLAGS := -DLOOP_KERNELS='"$(abspath $(LOOP_GEN)/kernels.ptx)"')\
	$(eval $t_LIBS     := -lcmocka -lm))
$(ONE_BLOCK_TESTS:%=$(B)/tests/%): | $(LOOP_GEN)/kernels.ptx
