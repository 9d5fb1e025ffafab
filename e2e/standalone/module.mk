SHELL_TESTS += $(patsubst %,e2e/standalone/%.sh,guest forms hints nvml shares version)
