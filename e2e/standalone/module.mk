SHELL_TESTS += $(patsubst %,e2e/standalone/%.sh,guest forms groups hints memory-wait mps-per-level nvml profiles shares spatial version)
