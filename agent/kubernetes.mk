# The agent's Kubernetes side: who a client is, and what its pod says.
KUBERNETES_SRC  := agent/container.c agent/level.c agent/podlist.c agent/pods.c agent/kubeconfig.c \
                   agent/transfer.c agent/api.c agent/events.c agent/labels.c
KUBERNETES_LIBS := -lcurl -lcjson -lyaml

UNIT_TESTS += test-container test-level test-podlist test-kubeconfig test-pods
test-container_SRC     := agent/tests/test-container.c agent/container.c
test-container_STATIC  := base
test-container_LIBS    := -lcmocka
test-level_SRC         := agent/tests/test-level.c
test-level_STATIC       := agent nvml yaml base
test-level_CPPFLAGS     := -Iagent/include
test-level_LIBS        := -lcmocka -lyaml
test-podlist_SRC       := agent/tests/test-podlist.c agent/podlist.c agent/container.c
test-podlist_STATIC    := base
test-podlist_LIBS      := -lcmocka -lcjson
test-kubeconfig_SRC    := agent/tests/test-kubeconfig.c agent/kubeconfig.c
test-kubeconfig_STATIC := base
test-kubeconfig_LIBS   := -lcmocka -lyaml
test-pods_SRC          := agent/tests/test-pods.c agent/pods.c agent/podlist.c agent/container.c \
                          agent/kubeconfig.c agent/transfer.c agent/api.c
test-pods_STATIC       := loop base
test-pods_CPPFLAGS     := -Iagent/include
test-pods_LIBS         := -lcmocka $(KUBERNETES_LIBS) -lmicrohttpd

FUZZERS += fuzz-cgroup fuzz-pods fuzz-kubeconfig
fuzz-cgroup_SRC        := agent/tests/fuzz/fuzz-cgroup.c agent/container.c
fuzz-cgroup_STATIC     := base
fuzz-pods_SRC          := agent/tests/fuzz/fuzz-pods.c agent/podlist.c agent/container.c
fuzz-pods_STATIC       := base
fuzz-pods_LIBS         := -lcjson
fuzz-kubeconfig_SRC    := agent/tests/fuzz/fuzz-kubeconfig.c agent/kubeconfig.c
fuzz-kubeconfig_STATIC := base
fuzz-kubeconfig_LIBS   := -lyaml

# Events and labels, to an API server on loopback.
UNIT_TESTS += test-report
test-report_SRC      := agent/tests/test-report.c
test-report_CPPFLAGS := -Iagent/include -isystem $(CUDA_HOME)/include
test-report_STATIC   := agent nvml yaml loop base
test-report_LIBS     := -lcmocka $(KUBERNETES_LIBS) -lmicrohttpd
