# The simulator: policies on a virtual clock.
POLICY_SRC := $(addprefix agent/,policy.c turns.c $(addprefix policy-,hpf.c ffs.c static.c dynamic.c wfq.c \
              levels.c))
SIM_SRC    := $(addprefix agent/,sim.c sim-work.c sim-gpu.c)

PROGRAMS += weir-sim
weir-sim_SRC      := $(addprefix agent/,weir-sim.c sim-report.c) $(SIM_SRC)
weir-sim_CPPFLAGS := -Iagent/include
weir-sim_STATIC   := agent nvml yaml base
weir-sim_LIBS     := -lyaml -lm

UNIT_TESTS += test-turns test-sim test-objective
test-turns_SRC          := agent/tests/test-turns.c $(SIM_SRC)
test-turns_CPPFLAGS     := -Iagent/include
test-turns_STATIC       := agent nvml yaml base
test-turns_LIBS         := -lcmocka -lyaml -lm
test-sim_SRC            := agent/tests/test-sim.c $(SIM_SRC)
test-sim_CPPFLAGS       := -Iagent/include
test-sim_STATIC         := agent nvml yaml base
test-sim_LIBS           := -lcmocka -lyaml -lm
test-objective_SRC      := agent/tests/test-objective.c agent/objective.c agent/duration.c agent/scaled.c
test-objective_LIBS     := -lcmocka

FUZZERS += fuzz-trace
fuzz-trace_SRC          := agent/tests/fuzz/fuzz-trace.c agent/trace.c $(CONFIG_SRC) $(CONFIG_PARTS) $(POLICY_SRC)
fuzz-trace_CPPFLAGS     := -Iagent/include
fuzz-trace_STATIC       := base
fuzz-trace_LIBS         := -lyaml

SHELL_TESTS += agent/tests/sim.sh
