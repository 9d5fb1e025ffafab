# The event loop and NVML are the device plugin's, too.
LIBRARIES += loop nvml
loop_SRC      := agent/loop.c
loop_CPPFLAGS := -Iagent/include
nvml_SRC      := agent/nvml.c
nvml_CPPFLAGS := -Iagent/include -isystem $(CUDA_HOME)/include
include agent/kubernetes.mk
