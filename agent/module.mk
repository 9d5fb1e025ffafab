# The event loop, NVML and YAML are the device plugin's, too.
LIBRARIES += loop nvml yaml
loop_SRC      := agent/loop.c
loop_CPPFLAGS := -Iagent/include
nvml_SRC      := agent/nvml.c
nvml_CPPFLAGS := -Iagent/include -isystem $(CUDA_HOME)/include
yaml_SRC      := agent/yaml.c
yaml_CPPFLAGS := -Iagent/include

include agent/kubernetes.mk

# All of the agent but its main(), for the programs and the tests.
LIBRARIES += agent
agent_SRC := $(KUBERNETES_SRC) $(addprefix agent/,account.c address.c agent.c config.c control.c \
             gpu.c gpus.c handshake.c http.c metrics.c peer.c policy.c policy-hpf.c region.c rules.c \
             scheduler.c server.c session.c status.c table.c tenants.c yaml.c)
agent_CPPFLAGS := -Iagent/include -isystem $(CUDA_HOME)/include
AGENT_STATIC   := agent loop nvml base
AGENT_LIBS     := $(KUBERNETES_LIBS) -lmicrohttpd -ldl

PROGRAMS += weir-agent weirctl
weir-agent_SRC      := agent/main.c
weir-agent_CPPFLAGS := $(agent_CPPFLAGS)
weir-agent_STATIC   := $(AGENT_STATIC)
weir-agent_LIBS     := $(AGENT_LIBS)
weirctl_SRC         := agent/weirctl.c
weirctl_CPPFLAGS    := $(agent_CPPFLAGS)
weirctl_STATIC      := agent base
weirctl_LIBS        := -lcjson -lyaml
