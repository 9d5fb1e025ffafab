# Programs that measure. Each one's source says what.
BENCHES += bench-launch bench-gate bench-form bench-channels bench-in-place
$(foreach n,bench-launch bench-gate bench-form bench-channels bench-in-place,\
	$(eval $n_SRC := e2e/bench/programs/$n.c e2e/workloads/samples.c e2e/workloads/workload.c e2e/workloads/spin.c)\
	$(eval $n_CPPFLAGS = -I$(CUDA_HOME)/include -Ie2e/workloads)\
	$(eval $n_LIBS := -ldl)\
	$(eval $(B)/bench/$n: $(B)/simcuda/libcuda.so.1))
bench-launch_SRC += $(GEN)/e2e/workloads/spin-ptx.c
bench-channels_SRC += $(GEN)/e2e/workloads/spin-ptx.c
bench-gate_SRC   += $(GEN)/e2e/workloads/spin-ptx.c
bench-in-place_SRC += $(patsubst %,$(GEN)/e2e/workloads/%-ptx.c,spin in-place)
bench-form_SRC   += $(GEN)/e2e/workloads/spin-forms-ptx.c
bench-form_STATIC := libweir-transform
bench-form_LIBS   := $(TRANSFORM_LIBS) -ldl
$(GEN)/e2e/workloads/spin-forms.ptx: $(GEN)/e2e/workloads/spin.ptx $(B)/bin/weir-transform
	$(Q)$(EMULATOR) $(B)/bin/weir-transform --form=persistent --form=resumable $< > $@

# demand-generator: a client that wants the GPU at random moments.
BENCHES += demand-generator
demand-generator_SRC      := $(addprefix e2e/bench/programs/,demand-generator.c agent-client.c) e2e/workloads/workload.c
demand-generator_STATIC   := base
demand-generator_CPPFLAGS  = -I$(CUDA_HOME)/include -Ie2e/workloads
demand-generator_LIBS     := -ldl
$(B)/bench/demand-generator: $(B)/simcuda/libcuda.so.1

# bench-queue: how soon a full queue of kernels stands still.
BENCHES += bench-queue
bench-queue_SRC      := $(addprefix e2e/bench/programs/,bench-queue.c object.c) $(addprefix e2e/workloads/,workload.c samples.c) \
                        $(GEN)/e2e/workloads/spin-clock-ptx.c
bench-queue_STATIC   := libweir-transform
bench-queue_CPPFLAGS  = -I$(CUDA_HOME)/include -Ie2e/workloads
bench-queue_LIBS     := $(TRANSFORM_LIBS) -ldl
$(B)/bench/bench-queue: $(B)/simcuda/libcuda.so.1

# bench-kernels: what the forms cost the papers' kernels, and how soon they leave.
BENCHES += bench-kernels
BENCH_KERNELS_SRC      := $(addprefix e2e/bench/programs/,bench-kernels.c mixed-lengths.c) $(wildcard e2e/bench/programs/forms/*.c) e2e/workloads/workload.c \
                          $(GEN)/e2e/workloads/mixed-lengths-ptx.c
bench-kernels_SRC       = $(BENCH_KERNELS_SRC) $(PAPERS_SRC)
bench-kernels_STATIC   := libweir-transform
bench-kernels_CPPFLAGS := -I$(CUDA_HOME)/include -Ie2e/workloads
bench-kernels_CFLAGS    = $(kernels_CFLAGS)
bench-kernels_LIBS     := $(TRANSFORM_LIBS) -ldl -lm
$(B)/bench/bench-kernels: $(B)/simcuda/libcuda.so.1

# bench-tensor: the same of kernels for tensor cores.
BENCHES += bench-tensor
bench-tensor_SRC       = $(BENCH_KERNELS_SRC) $(TENSOR_SRC)
bench-tensor_STATIC   := libweir-transform
bench-tensor_CPPFLAGS := -I$(CUDA_HOME)/include -Ie2e/workloads
bench-tensor_LIBS     := $(TRANSFORM_LIBS) -ldl -lm
$(B)/bench/bench-tensor: $(B)/simcuda/libcuda.so.1

# worker: a client that plays one of the papers' benchmarks on command.
BENCHES += worker
worker_SRC       = e2e/bench/programs/worker.c e2e/workloads/workload.c $(PAPERS_SRC)
worker_CPPFLAGS := -I$(CUDA_HOME)/include -Ie2e/workloads
worker_CFLAGS    = $(kernels_CFLAGS)
worker_LIBS     := -ldl -lm
$(B)/bench/worker: $(B)/simcuda/libcuda.so.1

# bench-compile: what the first use of a module costs.
BENCHES += bench-compile
bench-compile_SRC       = $(addprefix e2e/bench/programs/,bench-compile.c agent-client.c object.c) e2e/workloads/workload.c $(PAPERS_SRC)
bench-compile_STATIC   := libweir-transform base
bench-compile_CPPFLAGS  = -I$(CUDA_HOME)/include -Ie2e/workloads
bench-compile_CFLAGS    = $(kernels_CFLAGS)
bench-compile_LIBS     := $(TRANSFORM_LIBS) -ldl -lm
$(B)/bench/bench-compile: $(B)/simcuda/libcuda.so.1
SHELL_TESTS += e2e/bench/smoke.sh

# bench-transform: how fast the transformer is, and what memory it takes.
BENCHES += bench-transform
bench-transform_SRC    := e2e/bench/programs/bench-transform.c e2e/bench/programs/corpus.c e2e/forms/random.c \
			  $(wildcard e2e/forms/generator/*.c)
bench-transform_STATIC := libweir-transform
bench-transform_LIBS   := $(TRANSFORM_LIBS)

# bench-predict: how well times of kernels are predicted.
BENCHES += bench-predict
bench-predict_SRC       = e2e/bench/programs/bench-predict.c e2e/workloads/workload.c runtime-lib/measure/predict-ridge.c $(PAPERS_SRC)
bench-predict_CPPFLAGS := -I$(CUDA_HOME)/include -Ie2e/workloads
bench-predict_CFLAGS    = $(kernels_CFLAGS)
bench-predict_LIBS     := -ldl -lm
%/bench-predict.o: CPPFLAGS += -Iruntime-lib
$(B)/bench/bench-predict: $(B)/simcuda/libcuda.so.1

# bench-agent: what an agent of many clients costs, and how soon it decides; run by the experiment agent-cost.
BENCHES += bench-agent
bench-agent_SRC      := $(addprefix e2e/bench/programs/,bench-agent.c fake-clients.c) e2e/workloads/workload.c e2e/workloads/samples.c
bench-agent_STATIC   := base
bench-agent_CPPFLAGS  = -I$(CUDA_HOME)/include -Ie2e/workloads
bench-agent_LIBS     := -ldl
$(B)/bench/bench-agent: $(B)/simcuda/libcuda.so.1

# plain-slice.so: slices of the hardware without Weir, a baseline.
SHARED += plain-slice.so
plain-slice.so_SRC := e2e/bench/programs/plain-slice.c
