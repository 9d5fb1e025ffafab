SHELL_TESTS += $(patsubst %,e2e/standalone/%.sh,coexec guest forms groups hints install loop-programs memory-wait mps-per-level nvml profiles shares spatial spatial-closed storms version)

# Linked with no driver: it opens one.
PROGRAMS += reopen
reopen_SRC      := e2e/standalone/reopen.c $(GEN)/e2e/workloads/spin-ptx.c
reopen_CPPFLAGS := -isystem $(CUDA_HOME)/include
reopen_LIBS     := -ldl
