# A real node: programs for its pods, and the tests on it.
PROGRAMS += intruder bypass
intruder_SRC    := e2e/cluster/intruder.c
intruder_STATIC := base
bypass_SRC      := e2e/cluster/bypass.c
bypass_CPPFLAGS := -isystem $(CUDA_HOME)/include
bypass_LIBS     := -ldl
SHELL_TESTS += e2e/cluster/tests/kubelet.sh e2e/cluster/tests/dra-nodes.sh e2e/cluster/tests/chart.sh e2e/cluster/tests/hostile-pods.sh

# Built before the tests, whose time is limited.
test: $(if $(filter 1,$(WEIR_SKIP_KUBELET)),,build/kubelet-binaries)
build/kubelet-binaries: $(wildcard e2e/cluster/kube/*) | build/.setup
	$(Q)e2e/cluster/build.sh kube > $@
	$(Q)e2e/cluster/build.sh helm >> $@
