# The simulator: policies on a virtual clock.
SIM_SRC    := $(filter-out %/weir-sim.c %/sim-report.c,$(call agent-room,sim))

PROGRAMS += weir-sim
weir-sim_SRC      := $(call agent-room,sim)
weir-sim_CPPFLAGS := $(agent_CPPFLAGS)
weir-sim_STATIC   := agent node base
weir-sim_LIBS     := -lyaml -lm

UNIT_TESTS += test-run-queue test-sim test-objective test-charge test-coexec-search test-coexec-plan test-coexec-queue
test-run-queue_SRC      := agent/tests/test-run-queue.c $(SIM_SRC)
test-run-queue_CPPFLAGS := $(agent_CPPFLAGS)
test-run-queue_STATIC   := agent node base
test-run-queue_LIBS     := -lcmocka -lyaml -lm
test-sim_SRC            := agent/tests/test-sim.c $(SIM_SRC)
test-sim_CPPFLAGS       := $(agent_CPPFLAGS)
test-sim_STATIC         := agent node base
test-sim_LIBS           := -lcmocka -lyaml -lm
test-objective_SRC      := agent/tests/test-objective.c agent/policy/objective.c agent/common/units.c
test-objective_CPPFLAGS := $(agent_CPPFLAGS)
test-objective_LIBS     := -lcmocka
test-coexec-search_SRC      := agent/tests/test-coexec-search.c agent/policy/coexec/space.c agent/policy/coexec/search.c
test-coexec-search_CPPFLAGS := $(agent_CPPFLAGS)
test-coexec-search_STATIC   := base
test-coexec-search_LIBS     := -lcmocka -lm
test-coexec-plan_SRC        := agent/tests/test-coexec-plan.c agent/common/units.c $(POLICY_SRC)
test-coexec-plan_CPPFLAGS   := $(agent_CPPFLAGS)
test-coexec-plan_STATIC     := agent base
test-coexec-plan_LIBS       := -lcmocka -lm
test-coexec-queue_SRC       := agent/tests/test-coexec-queue.c agent/common/units.c $(POLICY_SRC)
test-coexec-queue_CPPFLAGS  := $(agent_CPPFLAGS)
test-coexec-queue_STATIC    := agent base
test-coexec-queue_LIBS      := -lcmocka -lm
test-charge_SRC         := agent/tests/test-charge.c agent/policy/charge.c
test-charge_LIBS        := -lcmocka

FUZZERS += fuzz-trace
fuzz-trace_SRC          := agent/tests/fuzz/fuzz-trace.c agent/scheduler/trace.c $(CONFIG_SRC) $(CONFIG_PARTS) $(POLICY_SRC)
fuzz-trace_CPPFLAGS     := $(agent_CPPFLAGS)
fuzz-trace_STATIC       := base
fuzz-trace_LIBS         := -lyaml

SHELL_TESTS += agent/tests/sim.sh
