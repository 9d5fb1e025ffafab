include e2e/simcuda/driver/driver.mk
include e2e/simcuda/ptx/ptx.mk
include e2e/simcuda/runtime/runtime.mk

# A stand-in for NVIDIA's MPS daemon; nothing but tests start it.
PROGRAMS += sim-mps-control
sim-mps-control_SRC := $(addprefix e2e/simcuda/machine/,mps-control.c mps-server.c) $(SIM_MACHINE_SRC)
# What is preloaded into it would come before a sanitizer's library, which refuses to run then.
sim-mps-control_CFLAGS  += $(if $(SAN),-fno-sanitize=all)
sim-mps-control_LDFLAGS += $(if $(SAN),-fno-sanitize=all)
