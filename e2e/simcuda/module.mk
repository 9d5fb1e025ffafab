include e2e/simcuda/driver.mk
include e2e/simcuda/ptx.mk
