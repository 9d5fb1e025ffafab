# The simulator: policies on a virtual clock.
SIM_SRC    := $(filter-out %/weir-sim.c %/sim-report.c,$(call agent-room,sim))

PROGRAMS += weir-sim
weir-sim_SRC      := $(call agent-room,sim)
weir-sim_CPPFLAGS := $(agent_CPPFLAGS)
weir-sim_STATIC   := agent node base
weir-sim_LIBS     := -lyaml -lm

# A trace on the simulated GPU.
SIM_TESTS := test-sim test-sim-workers
UNIT_TESTS += test-run-queue test-runs $(SIM_TESTS) test-objective test-charge
test-run-queue_SRC      := agent/tests/test-run-queue.c $(SIM_SRC)
test-run-queue_CPPFLAGS := $(agent_CPPFLAGS)
test-run-queue_STATIC   := agent node base
test-run-queue_LIBS     := -lcmocka -lyaml -lm
test-runs_SRC           := agent/tests/test-runs.c agent/common/units.c $(POLICY_SRC)
test-runs_CPPFLAGS      := $(agent_CPPFLAGS)
test-runs_STATIC        := agent base
test-runs_LIBS          := -lcmocka -lm
$(foreach t,$(SIM_TESTS),$(eval $t_SRC := agent/tests/$t.c agent/tests/sim-play.c $(SIM_SRC))\
	$(eval $t_CPPFLAGS := $(agent_CPPFLAGS))$(eval $t_STATIC := agent node base)\
	$(eval $t_LIBS := -lcmocka -lyaml -lm))
test-objective_SRC      := agent/tests/test-objective.c agent/policy/objective.c agent/common/units.c
test-objective_CPPFLAGS := $(agent_CPPFLAGS)
test-objective_LIBS     := -lcmocka
test-charge_SRC         := agent/tests/test-charge.c agent/policy/charge.c
test-charge_LIBS        := -lcmocka

# The policy coexec.
COEXEC_TESTS := test-coexec-search test-coexec-correct test-coexec-memory test-coexec-plan test-coexec-members test-coexec-pairs \
                test-coexec-queue
UNIT_TESTS += $(COEXEC_TESTS)
define coexec-test
$1_SRC      := agent/tests/$1.c agent/common/units.c $(POLICY_SRC)
$1_CPPFLAGS := $(agent_CPPFLAGS)
$1_STATIC   := agent base
$1_LIBS     := -lcmocka -lm
endef
$(foreach t,$(COEXEC_TESTS),$(eval $(call coexec-test,$t)))
$(foreach t,test-coexec-plan test-coexec-members,$(eval $t_SRC += agent/tests/coexec-world.c agent/tests/coexec-begin.c))
$(foreach t,test-coexec-pairs test-coexec-queue,$(eval $t_SRC += agent/tests/coexec-gpu.c agent/tests/coexec-begin.c))

FUZZERS += fuzz-trace
fuzz-trace_SRC          := agent/tests/fuzz/fuzz-trace.c agent/scheduler/trace.c $(CONFIG_SRC) $(CONFIG_PARTS) $(POLICY_SRC)
fuzz-trace_CPPFLAGS     := $(agent_CPPFLAGS)
fuzz-trace_STATIC       := base
fuzz-trace_LIBS         := -lyaml

SHELL_TESTS += agent/tests/sim.sh
