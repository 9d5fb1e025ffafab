SHELL_TESTS += $(patsubst %,e2e/standalone/%.sh,guest forms nvml shares version)
