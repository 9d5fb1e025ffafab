# Rooms: every .c file of a room belongs to the agent, but for the programs beside it.
agent-room = $(wildcard $(patsubst %,agent/%/*.c,$1))

# The same for all here, so that each source is compiled once.
agent_CPPFLAGS := -Iagent/include -isystem $(CUDA_HOME)/include

# What the device plugin uses as well.
LIBRARIES += node
node_SRC      := $(call agent-room,common nvml)
node_CPPFLAGS := $(agent_CPPFLAGS)

# The configuration and what it needs, for fuzzers that are built from source.
POLICY_SRC    := $(call agent-room,policy policy/coexec)
CONFIG_SRC    := $(call agent-room,config)
CONFIG_PARTS  := $(addprefix agent/,$(patsubst %,common/%.c,address gpu-select units yaml) nvml/health.c nvml/xid.c)

include agent/kubernetes.mk
include agent/sim.mk

# All of the agent but its main(), for the programs and the tests.
LIBRARIES += agent
COMPILER_SRC   := $(patsubst %,agent/compile/%.c,weir-compile assemble sandbox)
agent_SRC      := $(filter-out $(COMPILER_SRC) agent/mps/weir-mps.c agent/daemon/main.c,\
                  $(POLICY_SRC) $(call agent-room,config kubernetes shm hardware compile scheduler scheduler/gpu mps metrics profile reports daemon daemon/control) \
                  agent/weirctl/table.c agent/weirctl/top.c)
AGENT_STATIC   := agent node base libweir-transform
AGENT_LIBS     := $(KUBERNETES_LIBS) -lmicrohttpd -lcrypto $(TRANSFORM_LIBS) -ldl

PROGRAMS += weir-agent weirctl
weir-agent_SRC      := agent/daemon/main.c
weir-agent_CPPFLAGS := $(agent_CPPFLAGS)
weir-agent_STATIC   := $(AGENT_STATIC)
weir-agent_LIBS     := $(AGENT_LIBS)
weirctl_SRC         := $(patsubst %,agent/weirctl/%.c,weirctl ask profile)
weirctl_CPPFLAGS    := $(agent_CPPFLAGS)
weirctl_STATIC      := agent node base
weirctl_LIBS        := -lcjson -lyaml

PROGRAMS += weir-mps
weir-mps_SRC        := agent/mps/weir-mps.c
weir-mps_CPPFLAGS   := $(agent_CPPFLAGS)
weir-mps_STATIC     := agent node base
weir-mps_LIBS       := -lyaml

# The compiler is a part of the toolkit, wherever that has it.
PTX_COMPILER := $(if $(ROOT),$(ROOT)/usr/lib/aarch64-linux-gnu/libnvptxcompiler_static.a,$(firstword $(wildcard \
                $(foreach d,$(CUDA_HOME)/lib64 $(CUDA_HOME)/lib build/cuda/lib,$d/libnvptxcompiler_static.a)) \
                build/cuda/lib/libnvptxcompiler_static.a))
PROGRAMS += weir-compile
weir-compile_SRC      := $(COMPILER_SRC) agent/compile/request.c
weir-compile_CPPFLAGS := -isystem $(CUDA_HOME)/include -isystem build/cuda/include
weir-compile_STATIC   := libweir-transform
weir-compile_LIBS     := $(PTX_COMPILER) $(TRANSFORM_LIBS) -lm
# Its limit of memory has no room for the sanitizers' shadows.
ifneq ($(SAN),)
weir-compile_SRC      += $(libweir-transform_SRC)
weir-compile_STATIC   :=
weir-compile_CFLAGS   := -fno-sanitize=all
weir-compile_LDFLAGS  := -fno-sanitize=all
endif

# A whole agent, with fake pods and identities.
MEMORY_TESTS := test-memory test-memory-limits
# Mode mps-per-level.
PIPES_TESTS := test-agent-pipes test-agent-servers
WHOLE_AGENT := test-agent test-agent-pods test-agent-ready $(MEMORY_TESTS) test-agent-hostile test-agent-commands test-agent-http test-agent-compile test-agent-profiles test-agent-unregistered $(PIPES_TESTS)
COMPILE_TESTS := test-compile test-compile-queue test-compile-hostile
SCHEDULER_TESTS := test-scheduler test-scheduler-concurrent test-recording test-scheduler-shares test-scheduler-parts test-compute-limit test-hold-by-hand test-min-rates test-overruns test-scheduler-coexec
# On a synthetic rate curve.
MIN_RATE_TESTS := test-min-rate-steady test-min-rate-requests
MPS_TESTS := test-mps test-mps-supervisor
# One GPU.
GPU_TESTS := test-gpu test-gpu-sms test-max-blocking-time
AGENT_TESTS := test-loop test-agent-config test-config-gpu test-account test-session-state test-rules test-region $(GPU_TESTS) test-yield test-min-rate $(MIN_RATE_TESTS) test-slices test-limit test-channels test-process-use test-freeze \
               test-tenants test-metrics test-profiles test-coexec-file $(SCHEDULER_TESTS) test-accounts $(COMPILE_TESTS) test-cache $(MPS_TESTS) test-file-watch $(WHOLE_AGENT)
UNIT_TESTS  += $(AGENT_TESTS)
define agent-test
$1_SRC      := agent/tests/$1.c
$1_CPPFLAGS := $(agent_CPPFLAGS)
$1_STATIC   := $(AGENT_STATIC)
$1_LIBS     := -lcmocka $(AGENT_LIBS)
endef
$(foreach n,$(AGENT_TESTS),$(eval $(call agent-test,$n)))
test-accounts_LIBS += -lm
MODEL_TESTS := test-compute-limit test-hold-by-hand test-min-rates
$(foreach t,$(MODEL_TESTS),$(eval $t_SRC += agent/tests/gpu-model.c)\
	$(eval $t_LDFLAGS := $(addprefix -Wl$(comma)--wrap=,loop_now channels_ran channels_stays_stopped)))
test-overruns_LDFLAGS := $(addprefix -Wl$(comma)--wrap=,process_use_ask process_use_tells process_use_find events_tell pods_find)
test-channels_LDFLAGS := $(addprefix -Wl$(comma)--wrap=channel_group_,is_device set_slice get_slice stop gpu)
$(foreach t,$(MIN_RATE_TESTS),$(eval $t_SRC += agent/tests/min-rate-model.c))
$(foreach t,$(MPS_TESTS),$(eval $t_SRC += agent/tests/mps-fixture.c))
$(foreach t,$(MEMORY_TESTS),$(eval $t_SRC += agent/tests/memory-fixture.c))
$(foreach t,$(SCHEDULER_TESTS),$(eval $t_SRC += agent/tests/scheduler-world.c))
$(foreach t,$(GPU_TESTS),$(eval $t_SRC += agent/tests/gpu-fixture.c))
$(foreach t,$(COMPILE_TESTS),$(eval $t_SRC += agent/tests/compile-service.c))
$(foreach t,$(COMPILE_TESTS) $(WHOLE_AGENT),$(eval $t_SRC += agent/tests/compile-fixture.c)\
	$(eval $(B)/tests/$t: | $(B)/bin/weir-compile))
$(foreach t,$(WHOLE_AGENT),$(eval $t_SRC += agent/tests/agent-fixture.c)\
	$(eval $t_LDFLAGS := $(addprefix -Wl$(comma)--wrap=,container_identify pods_new pods_free \
	pods_find pods_search pods_each pods_connected pods_hurry)))
$(foreach t,$(PIPES_TESTS),$(eval $t_SRC += agent/tests/pipes-fixture.c)\
	$(eval $t_LDFLAGS += $(test-channels_LDFLAGS)))
$(foreach t,test-agent-unregistered test-overruns,$(eval $t_SRC += agent/tests/fake-server.c)\
	$(eval $t_LDFLAGS += -Wl$(comma)--wrap=mps_end_work))

UNIT_TESTS += test-health
test-health_SRC      := agent/tests/test-health.c
test-health_CPPFLAGS := $(agent_CPPFLAGS)
test-health_STATIC   := node base
test-health_LIBS     := -lcmocka -lyaml

$(patsubst %,$(B)/tests/%,$(MPS_TESTS) $(PIPES_TESTS)): | $(B)/lib/libweir-mps.so $(B)/bin/sim-mps-control $(B)/bin/weir-mps

# Its limit of memory has no room for the sanitizers' shadows.
UNIT_TESTS  += test-sandbox
UNSANITIZED += test-sandbox
# They execute programs, or need filters of system calls or open_tree(), which qemu does not have.
UNEMULATED  += test-sandbox $(COMPILE_TESTS) test-agent-compile test-agent-profiles test-agent test-agent-pods test-agent-hostile $(PIPES_TESTS) $(MPS_TESTS) test-region
test-sandbox_SRC  := agent/tests/test-sandbox.c agent/compile/sandbox.c
test-sandbox_LIBS := -lcmocka

# Built from source, not from the library, so that libFuzzer sees their branches.
FUZZERS += fuzz-config fuzz-message fuzz-status fuzz-profile
fuzz-profile_SRC      := $(addprefix agent/,tests/fuzz/fuzz-profile.c policy/yield.c $(patsubst %,policy/coexec/%.c,memory order unfinished search space) $(patsubst %,profile/%.c,profiles profile-file profile-json coexec-command))
fuzz-profile_CPPFLAGS := $(agent_CPPFLAGS)
fuzz-profile_STATIC   := node base libweir-transform
fuzz-profile_LIBS     := -lcjson -lcrypto -lyaml $(TRANSFORM_LIBS)
# And the transformer's, as its own fuzzers have them.
FUZZERS += fuzz-request
fuzz-request_SRC     := agent/tests/fuzz/fuzz-request.c agent/compile/request.c $(libweir-transform_SRC)
fuzz-request_LIBS    := $(TRANSFORM_LIBS)

fuzz-config_SRC      := agent/tests/fuzz/fuzz-config.c $(CONFIG_SRC) $(CONFIG_PARTS) $(POLICY_SRC)
fuzz-config_CPPFLAGS := $(agent_CPPFLAGS)
fuzz-config_STATIC   := base
fuzz-config_LIBS     := -lyaml
fuzz-message_SRC     := agent/tests/fuzz/fuzz-message.c agent/daemon/session-state.c runtime-lib/base/protocol.c
fuzz-status_SRC      := $(addprefix agent/,tests/fuzz/fuzz-status.c metrics/metrics.c common/metric.c common/text.c) \
                        $(addprefix agent/scheduler/,tenants.c sms.c) \
                        $(CONFIG_SRC) $(CONFIG_PARTS) $(POLICY_SRC)
fuzz-status_CPPFLAGS := $(agent_CPPFLAGS)
fuzz-status_STATIC   := base libweir-transform
fuzz-status_LIBS     := -lyaml $(TRANSFORM_LIBS)

SHELL_TESTS += agent/tests/agent.sh agent/tests/reload.sh agent/tests/weir-compile.py

BENCHES += bench-profiles
bench-profiles_SRC      := agent/tests/bench-profiles.c
bench-profiles_CPPFLAGS := $(agent_CPPFLAGS)
bench-profiles_STATIC   := $(AGENT_STATIC)
bench-profiles_LIBS     := $(AGENT_LIBS)

BENCHES += bench-cached
bench-cached_SRC      := agent/tests/bench-cached.c agent/tests/compile-fixture.c
bench-cached_CPPFLAGS := $(agent_CPPFLAGS)
bench-cached_STATIC   := $(AGENT_STATIC)
bench-cached_LIBS     := $(AGENT_LIBS)
