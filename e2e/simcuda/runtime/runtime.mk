# A stand-in for libcudart_static.a, for programs of nvcc that run on the simulated driver.
LIBRARIES += simcudart
simcudart_SRC      := $(wildcard e2e/simcuda/runtime/*.c)
simcudart_CPPFLAGS := -isystem $(CUDA_HOME)/include
