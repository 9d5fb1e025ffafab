# mps-per-level.sh is run by hand: a client that asks for its server on a busy machine may give up.
SHELL_TESTS += $(patsubst %,e2e/standalone/%.sh,guest forms hints nvml shares version)
