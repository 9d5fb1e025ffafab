# An agent under attack, under chaos, and beside the release before.
SHELL_TESTS += $(patsubst %,e2e/robustness/%.sh,kill memory memory-ways restart hostile channels levels stops upgrade) \
               e2e/robustness/soak/tests/check.py e2e/robustness/soak/soak.sh

PROGRAMS += hostile
hostile_SRC    := $(wildcard e2e/robustness/hostile/*.c)
hostile_STATIC := base
hostile_CPPFLAGS := -isystem $(CUDA_HOME)/include
hostile_LIBS   := -ldl

# Libraries and agents of the protocol's first version.
PROGRAMS += compat-client compat-agent
compat-client_SRC := e2e/robustness/compat/client.c e2e/robustness/compat/socket.c
compat-agent_SRC  := e2e/robustness/compat/agent.c e2e/robustness/compat/socket.c

# The agent's wall clock, for the soak.
SHARED += librealtime.so
librealtime.so_SRC := e2e/robustness/soak/realtime.c
