# What libweir adds to a launch: run it with and without.
BENCHES += bench-launch
bench-launch_SRC := e2e/bench/bench-launch.c e2e/workloads/samples.c e2e/workloads/workload.c \
                    e2e/workloads/spin.c $(GEN)/e2e/workloads/spin-ptx.c
bench-launch_CPPFLAGS = -I$(CUDA_HOME)/include -Ie2e/workloads
bench-launch_LIBS := -ldl
$(B)/bench/bench-launch: $(B)/simcuda/libcuda.so.1
