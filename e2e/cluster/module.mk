# A real node: programs for its pods, and the tests on it.
PROGRAMS += intruder bypass
intruder_SRC    := e2e/cluster/intruder.c
intruder_STATIC := base
bypass_SRC      := e2e/cluster/bypass.c
bypass_CPPFLAGS := -isystem $(CUDA_HOME)/include
bypass_LIBS     := -ldl
SHELL_TESTS += $(addprefix e2e/cluster/tests/,kubelet.sh dra-nodes.sh chart.sh hostile-pods.sh quick-start.sh)

# Built before the tests, whose time is limited.
test: $(if $(filter 1,$(WEIR_SKIP_KUBELET)),,build/kubelet-binaries)
build/kubelet-binaries: $(wildcard e2e/cluster/kube/* e2e/cluster/kube/*/*) | build/.setup
	$(Q)e2e/cluster/build.sh kube > $@
	$(Q)e2e/cluster/build.sh operator >> $@
	$(Q)e2e/cluster/build.sh helm >> $@
