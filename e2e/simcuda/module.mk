include e2e/simcuda/driver.mk
include e2e/simcuda/ptx.mk

# A stand-in for NVIDIA's MPS daemon; nothing but tests start it.
PROGRAMS += sim-mps-control
sim-mps-control_SRC := e2e/simcuda/mps-control.c
