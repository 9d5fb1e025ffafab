SHELL_TESTS += $(patsubst %,e2e/standalone/%.sh,coexec guest forms groups hints loop-programs memory-wait mps-per-level nvml profiles shares spatial storms version)
