# bench-launch: what libweir adds to a launch; run it with and without. bench-gate: what a gate costs the GPU.
BENCHES += bench-launch bench-gate
$(foreach n,bench-launch bench-gate,\
	$(eval $n_SRC := e2e/bench/$n.c e2e/workloads/samples.c e2e/workloads/workload.c \
		e2e/workloads/spin.c $(GEN)/e2e/workloads/spin-ptx.c)\
	$(eval $n_CPPFLAGS = -I$(CUDA_HOME)/include -Ie2e/workloads)\
	$(eval $n_LIBS := -ldl)\
	$(eval $(B)/bench/$n: $(B)/simcuda/libcuda.so.1))
