SHELL_TESTS += $(patsubst %,e2e/standalone/%.sh,guest forms hints mps-per-level nvml shares version)
