# Programs around event loops on the GPU (weir/loop.cuh). Each does the same work in other ways, too. They are programs of
# experiments, in build/bench.
LOOP_PROGRAMS := loop-throttle loop-ports loop-server loop-client loop-rude loop-grep loop-images loop-file-read loop-tokens
LOOP_CLIENTS := loop-client loop-rude
BENCHES += $(LOOP_PROGRAMS)
LOOP_DIR := e2e/workloads/loop
loop-parts = $(patsubst %,$(LOOP_DIR)/%.c,$1) $(patsubst %,$(WORKLOAD_GEN)/loop/%-ptx.c,$2)
LOOP_PIPELINE := $(call loop-parts,pipeline host,tokens tokens-loop tokens-loop-leaving) \
                 $(patsubst %,e2e/workloads/%.c,workload parallel samples)

loop-throttle_SRC  := $(call loop-parts,throttle leaves host,throttle)
LOOP_PARTS := $(patsubst %,parts-%,boxes angles keys suffixes)
loop-ports_SRC      = $(call loop-parts,ports leaves host,$(LOOP_PARTS) $(LOOP_PARTS:%=%-leaving)) $(PAPERS_SRC)
loop-ports_CFLAGS  := $(kernels_CFLAGS)
loop-server_SRC    := $(call loop-parts,server serve-loop front service leaves host,services server-loop)
loop-client_SRC    := $(call loop-parts,client service sockets,) e2e/workloads/samples.c
loop-rude_SRC      := $(call loop-parts,rude service sockets,)
loop-grep_SRC      := $(call loop-parts,grep corpus host,grep grep-loop grep-loop-leaving) e2e/workloads/parallel.c
loop-images_SRC    := $(call loop-parts,images host,images images-loop images-loop-leaving) e2e/workloads/parallel.c
loop-file-read_SRC := $(call loop-parts,file-read host,file-read) e2e/workloads/parallel.c
loop-tokens_SRC    := $(call loop-parts,tokens,) $(LOOP_PIPELINE)

define loop-settings
$1_SRC += $(if $(filter loop-tokens,$1),,e2e/workloads/workload.c)
$1_CPPFLAGS := -I$(CUDA_HOME)/include -Ie2e/workloads
$1_STATIC := $(if $(filter $(LOOP_CLIENTS),$1),,libweir-loop)
$1_LIBS := $(if $(filter $(LOOP_CLIENTS),$1),,$(LOOP_LIBS)) -ldl -lm
$(B)/bench/$1: $(WORKLOAD_CUDA)
endef
$(foreach n,$(LOOP_PROGRAMS),$(eval $(call loop-settings,$n)))

# Text to tensor for PyTorch: e2e/bench/programs/tokens.py loads it.
SHARED += libloop-tokens.so
libloop-tokens.so_SRC      := $(LOOP_PIPELINE)
libloop-tokens.so_CPPFLAGS := -I$(CUDA_HOME)/include -Ie2e/workloads
libloop-tokens.so_STATIC   := libweir-loop
libloop-tokens.so_LIBS     := $(LOOP_LIBS) -L$(B)/simcuda -l:libcuda.so.1
libloop-tokens.so_LINKDEPS := $(WORKLOAD_CUDA)

# NAME-leaving.ptx: the same kernels, which leave again and again by themselves (weir/loop/leaving.cuh).
$(WORKLOAD_GEN)/loop/%-leaving.ptx: $(LOOP_DIR)/%.cu
	@mkdir -p $(@D)
	@echo "  NVCC    $@"
	$(Q)$(NVCC) -ptx -arch=$(NVCC_ARCH) $(NVCC_FLAGS) -DWEIR_LOOP_LEAVING -o $@ $<

LOOP_LEAVING := $(LOOP_PARTS) grep-loop images-loop tokens-loop
.SECONDARY: $(foreach n,$(LOOP_LEAVING),$(WORKLOAD_GEN)/loop/$n-leaving.ptx $(WORKLOAD_GEN)/loop/$n-leaving-ptx.c)
LOOP_PTX := $(patsubst %,$(WORKLOAD_GEN)/loop/%.ptx,$(patsubst $(LOOP_DIR)/%.cu,%,$(wildcard $(LOOP_DIR)/*.cu)) $(LOOP_LEAVING:%=%-leaving))
$(LOOP_PTX): NVCC_FLAGS := -std=c++17 -fmad=false -Iruntime-lib/include
$(LOOP_PTX): $(wildcard $(LOOP_DIR)/*.h $(LOOP_DIR)/*.cuh e2e/workloads/papers/*.cuh runtime-lib/include/weir/loop*.* runtime-lib/include/weir/loop/*.cuh)
