# The simulator: policies on a virtual clock.
POLICY_SRC := $(addprefix agent/,policy.c turns.c $(addprefix policy-,hpf.c ffs.c static.c dynamic.c wfq.c \
              levels.c))

PROGRAMS += weir-sim
weir-sim_SRC      := $(addprefix agent/,weir-sim.c sim.c sim-report.c)
weir-sim_CPPFLAGS := -Iagent/include
weir-sim_STATIC   := agent yaml base
weir-sim_LIBS     := -lyaml -lm
