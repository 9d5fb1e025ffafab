# The agent's room kubernetes.
KUBERNETES_LIBS := -lcurl -lcjson -lyaml

# What the device plugin uses as well: requests to the API server, and the file of claims.
LIBRARIES += api-client
api-client_SRC      := $(addprefix agent/kubernetes/,claims.c client.c credentials.c kubeconfig.c transfer.c)
api-client_CPPFLAGS := $(agent_CPPFLAGS)

UNIT_TESTS += test-container test-level test-checkpoint test-pod-check test-podlist test-kubeconfig test-pods
test-container_SRC     := agent/tests/test-container.c agent/kubernetes/container.c
test-container_STATIC  := base
test-container_LIBS    := -lcmocka
test-level_SRC         := agent/tests/test-level.c
test-level_STATIC       := agent node base
test-level_CPPFLAGS     := $(agent_CPPFLAGS)
test-level_LIBS        := -lcmocka -lyaml
test-checkpoint_SRC    := agent/tests/test-checkpoint.c agent/kubernetes/checkpoint.c
test-checkpoint_CPPFLAGS := $(agent_CPPFLAGS)
test-checkpoint_STATIC := node base
test-checkpoint_CPPFLAGS := $(agent_CPPFLAGS)
test-checkpoint_LIBS   := -lcmocka -lcjson
test-pod-check_SRC     := agent/tests/test-pod-check.c
test-pod-check_STATIC  := agent node base
test-pod-check_CPPFLAGS := $(agent_CPPFLAGS)
test-pod-check_LIBS    := -lcmocka -lyaml -lcjson
test-podlist_SRC       := agent/tests/test-podlist.c $(addprefix agent/kubernetes/,podlist.c container.c claims.c pod-claims.c)
test-podlist_STATIC    := node base
test-podlist_CPPFLAGS  := $(agent_CPPFLAGS)
test-podlist_LIBS      := -lcmocka -lcjson -lyaml
test-kubeconfig_SRC    := agent/tests/test-kubeconfig.c agent/kubernetes/kubeconfig.c
test-kubeconfig_STATIC := node base
test-kubeconfig_CPPFLAGS := $(agent_CPPFLAGS)
test-kubeconfig_LIBS   := -lcmocka -lyaml
test-pods_SRC          := agent/tests/test-pods.c agent/kubernetes/pods.c agent/kubernetes/pod-table.c agent/kubernetes/body.c agent/kubernetes/podlist.c agent/kubernetes/container.c \
                          agent/kubernetes/kubeconfig.c agent/kubernetes/transfer.c agent/kubernetes/credentials.c \
                          agent/kubernetes/claims.c agent/kubernetes/pod-claims.c
test-pods_STATIC       := node base
test-pods_CPPFLAGS     := $(agent_CPPFLAGS)
test-pods_LIBS         := -lcmocka $(KUBERNETES_LIBS) -lmicrohttpd

FUZZERS += fuzz-cgroup fuzz-checkpoint fuzz-pods fuzz-kubeconfig
fuzz-cgroup_SRC        := agent/tests/fuzz/fuzz-cgroup.c agent/kubernetes/container.c
fuzz-cgroup_STATIC     := base
fuzz-checkpoint_SRC    := agent/tests/fuzz/fuzz-checkpoint.c agent/kubernetes/checkpoint.c agent/common/units.c
fuzz-checkpoint_CPPFLAGS := $(agent_CPPFLAGS)
fuzz-checkpoint_STATIC := base
fuzz-checkpoint_LIBS   := -lcjson
fuzz-pods_SRC          := agent/tests/fuzz/fuzz-pods.c agent/kubernetes/podlist.c agent/kubernetes/container.c
fuzz-pods_STATIC       := base
fuzz-pods_LIBS         := -lcjson
fuzz-kubeconfig_SRC    := $(addprefix agent/,tests/fuzz/fuzz-kubeconfig.c kubernetes/kubeconfig.c common/yaml.c common/units.c)
fuzz-kubeconfig_CPPFLAGS := $(agent_CPPFLAGS)
fuzz-kubeconfig_STATIC := base
fuzz-kubeconfig_LIBS   := -lyaml

# With an API server on loopback.
REPORT_TESTS := test-report test-pod-report
UNIT_TESTS += $(REPORT_TESTS)
$(foreach t,$(REPORT_TESTS),$(eval $t_SRC := agent/tests/$t.c agent/tests/report-fixture.c)\
	$(eval $t_CPPFLAGS := $(agent_CPPFLAGS))$(eval $t_STATIC := agent node base)\
	$(eval $t_LIBS := -lcmocka $(KUBERNETES_LIBS) -lmicrohttpd))
test-pod-report_LDFLAGS := -Wl,--wrap=pods_find,--wrap=pods_each
