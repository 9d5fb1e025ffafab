# Each workload: host code in C, device code as PTX inside the program. They are linked against the
# simulated driver, without a run path: the loader takes whichever libcuda.so.1 there is.
WORKLOADS := vector-add matrix-multiply reduction long-block stream-order burst filler kernels memory-storm \
             memory-ways tensor masks counter channel-liar nvml-view nvml-view-linked hoard cas cooperative-pair
WORKLOAD_CUDA := $(B)/simcuda/libcuda.so.1
WORKLOAD_GEN := $(GEN)/e2e/workloads
PROGRAMS += $(WORKLOADS)

vector-add_SRC := e2e/workloads/vector-add.c $(WORKLOAD_GEN)/vector-add-ptx.c
matrix-multiply_SRC := e2e/workloads/matrix-multiply.c $(WORKLOAD_GEN)/matrix-multiply-ptx.c
reduction_SRC := e2e/workloads/reduction.c $(WORKLOAD_GEN)/reduction-ptx.c
WORKLOAD_SPIN := e2e/workloads/spin.c $(WORKLOAD_GEN)/spin-ptx.c
long-block_SRC := e2e/workloads/long-block.c $(WORKLOAD_SPIN)
burst_SRC := e2e/workloads/burst.c e2e/workloads/samples.c e2e/workloads/spin-timed.c \
             $(WORKLOAD_GEN)/spin-timed-ptx.c $(WORKLOAD_SPIN)
memory-storm_SRC := e2e/workloads/memory/memory-storm.c
memory-ways_SRC := e2e/workloads/memory/memory-ways.c e2e/workloads/memory/ways.c
nvml-view_SRC := e2e/workloads/nvml-view.c
nvml-view-linked_SRC := e2e/workloads/nvml-view.c
nvml-view-linked_CFLAGS := -DLINKED
hoard_SRC := e2e/workloads/memory/hoard.c $(WORKLOAD_SPIN)
cas_SRC := e2e/workloads/cas.c $(WORKLOAD_GEN)/cas-ptx.c
cas_STATIC := base
counter_SRC := e2e/workloads/channels/counter.c e2e/workloads/channels/own-groups.c
channel-liar_SRC := e2e/workloads/channels/liar.c e2e/workloads/channels/own-groups.c
counter_STATIC := base
counter_LDFLAGS := -Wl,--export-dynamic-symbol=ioctl
channel-liar_STATIC := base
channel-liar_LDFLAGS := $(counter_LDFLAGS)
filler_SRC := e2e/workloads/filler.c $(WORKLOAD_SPIN)
stream-order_SRC := $(wildcard e2e/workloads/stream-order/*.c) $(WORKLOAD_SPIN) $(WORKLOAD_GEN)/stream-order/stream-order-ptx.c
cooperative-pair_SRC := e2e/workloads/cooperative-pair.c $(WORKLOAD_GEN)/stream-order/stream-order-ptx.c
# The papers' benchmarks. What the CPU computes must be what the device computes, to the last bit: no
# multiplication and addition is made one operation.
PAPERS := elementwise linear grid canny particles euler search fft sort count cluster diffusion lattice fields dense stencil suffix eaters
PAPERS_SRC := $(patsubst %,e2e/workloads/%.c,plan parallel samples) $(PAPERS:%=e2e/workloads/papers/%.c) \
              e2e/workloads/papers/benchmarks.c $(PAPERS:%=$(WORKLOAD_GEN)/papers/%-ptx.c) \
              $(patsubst %,$(WORKLOAD_GEN)/%-ptx.c,vector-add matrix-multiply reduction)
kernels_SRC := e2e/workloads/kernels.c $(PAPERS_SRC)
# Kernels for the tensor cores of sm_90a.
TENSOR_SRC := $(patsubst %,e2e/workloads/%.c,plan parallel samples tensor/benchmarks) $(WORKLOAD_GEN)/tensor/tensor-ptx.c
tensor_SRC := e2e/workloads/kernels.c $(TENSOR_SRC)
$(WORKLOAD_GEN)/tensor/tensor.ptx: e2e/workloads/tensor/hopper.cuh
$(WORKLOAD_GEN)/tensor/tensor.ptx: NVCC_ARCH := compute_90a
# Kernels whose warps name lanes that exit.
masks_SRC := $(patsubst %,e2e/workloads/%.c,kernels plan parallel samples masks/benchmarks) $(WORKLOAD_GEN)/masks/masks-ptx.c
NVCC_ARCH := compute_75
WORKLOAD_CU := $(patsubst e2e/workloads/%.cu,%,$(wildcard e2e/workloads/*.cu e2e/workloads/*/*.cu))
.SECONDARY: $(WORKLOAD_CU:%=$(WORKLOAD_GEN)/%.ptx) $(WORKLOAD_CU:%=$(WORKLOAD_GEN)/%-ptx.c)
kernels_CFLAGS := -ffp-contract=off
$(WORKLOAD_GEN)/papers/%.ptx: NVCC_FLAGS := -fmad=false
$(PAPERS:%=$(WORKLOAD_GEN)/papers/%.ptx): $(wildcard e2e/workloads/papers/*.h e2e/workloads/papers/*.cuh)

define workload-settings
$1_SRC += e2e/workloads/workload.c
$1_CPPFLAGS := -I$(CUDA_HOME)/include -Ie2e/workloads
$1_LIBS := -ldl -lm
$(B)/bin/$1: $(WORKLOAD_CUDA)
endef
$(foreach n,$(WORKLOADS),$(eval $(call workload-settings,$n)))
nvml-view-linked_LIBS += $(SIMNVML)
$(B)/bin/nvml-view-linked: $(SIMNVML)

$(WORKLOAD_GEN)/%.ptx: e2e/workloads/%.cu
	@mkdir -p $(@D)
	@echo "  NVCC    $@"
	$(Q)$(NVCC) -ptx -arch=$(NVCC_ARCH) $(NVCC_FLAGS) -o $@ $<
# char NAME_ptx[] with the text of NAME.ptx.
$(WORKLOAD_GEN)/%-ptx.c: $(WORKLOAD_GEN)/%.ptx
	$(Q){ echo 'extern const char $(subst -,_,$(*F))_ptx[];'; echo 'const char $(subst -,_,$(*F))_ptx[] = {'; \
		od -An -v -td1 $< | sed 's/ *\(-*[0-9][0-9]*\)/\1,/g'; echo '0};'; } > $@

# A driver that loses launches, for the workloads' own test.
SHARED += fault.so
fault.so_SRC := e2e/workloads/tests/fault.c
fault.so_CPPFLAGS := -I$(CUDA_HOME)/include
fault.so_LIBS := -ldl
SHELL_TESTS += $(patsubst %,e2e/workloads/tests/%.sh,workloads kernels programs loop)

include e2e/workloads/programs/programs.mk e2e/workloads/loop/loop.mk
