# mps-per-level.sh is run by hand: in one of 40 runs neither client joined its server, and it is not known why.
SHELL_TESTS += $(patsubst %,e2e/standalone/%.sh,guest forms hints memory-wait nvml profiles shares version)
