# Old libraries with new agents, and the other way round: e2e/cases/upgrade.sh.
PROGRAMS += compat-client compat-agent
compat-client_SRC := e2e/compat/client.c e2e/compat/socket.c
compat-agent_SRC  := e2e/compat/agent.c e2e/compat/socket.c
SHELL_TESTS       += e2e/cases/upgrade.sh
