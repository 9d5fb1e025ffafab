# Whole programs as a user's nvcc builds them: host code and kernels in one file, machine code and PTX inside, the static
# CUDA runtime. Those that the simulated driver can run are linked again, with a stand-in for that runtime.
CUDA_PROGRAMS := $(patsubst %.cu,%,$(notdir $(wildcard e2e/workloads/programs/*.cu)))
# e2e/workloads/README.md says why.
NOT_SIMULATED := clusters conditional-graph dynamic-parallelism surfaces textures
SIMULATED_PROGRAMS := $(filter-out $(NOT_SIMULATED),$(CUDA_PROGRAMS))
# nvcc compiles for this machine only, and its host code knows no sanitizers.
EXTRA += $(if $(SAN)$(ROOT),,$(CUDA_PROGRAMS:%=$(B)/programs/%) $(SIMULATED_PROGRAMS:%=$(B)/simprograms/%))
.SECONDARY: $(CUDA_PROGRAMS:%=$(B)/obj/programs/%.o)

CUDA_LIB := $(firstword $(wildcard $(CUDA_HOME)/lib64 $(CUDA_HOME)/lib))
CUDA_PROGRAM_FLAGS = -gencode arch=compute_90,code=[sm_90,compute_90] \
                     $(if $(filter clusters,$*),,-gencode arch=compute_75,code=compute_75) \
                     $(if $(filter dynamic-parallelism,$*),-rdc=true) \
                     $(if $(filter per-thread-stream,$*),--default-stream per-thread)

$(B)/obj/programs/%.o: e2e/workloads/programs/%.cu $(addprefix e2e/workloads/programs/,program.cuh programs.mk) | $(SETUP_STAMP)
	@mkdir -p $(@D)
	@echo "  NVCC    $@"
	$(Q)$(NVCC) -std=c++17 -O2 -Xcompiler -Wall,-Wextra $(CUDA_PROGRAM_FLAGS) -c -o $@ $<
$(B)/programs/%: $(B)/obj/programs/%.o $(WORKLOAD_CUDA)
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(NVCC) $(CUDA_PROGRAM_FLAGS) -L$(CUDA_LIB) -L$(B)/simcuda -o $@ $< $(if $(filter runtime-module,$*),-l:libcuda.so.1)
$(B)/simprograms/%: $(B)/obj/programs/%.o $(B)/lib/simcudart.a $(WORKLOAD_CUDA)
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CXX) -o $@ $(filter %.o %.a,$^) -L$(B)/simcuda -l:libcuda.so.1
