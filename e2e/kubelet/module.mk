# The real-kubelet cases: e2e/cases/kubelet.sh starts a node with cluster.sh.
PROGRAMS += intruder
intruder_SRC    := e2e/kubelet/intruder.c
intruder_STATIC := base
SHELL_TESTS     += e2e/cases/kubelet.sh e2e/cases/chart.sh

# Built before the tests, whose time is limited.
test: $(if $(filter 1,$(WEIR_SKIP_KUBELET)),,build/kubelet-binaries)
build/kubelet-binaries: $(wildcard e2e/kubelet/go.* e2e/kubelet/helm/go.*) | build/.setup
	$(Q)e2e/kubelet/build.sh > $@
	$(Q)e2e/kubelet/build.sh helm >> $@

PROGRAMS += bypass
bypass_SRC      := e2e/kubelet/bypass.c
bypass_CPPFLAGS := -isystem $(CUDA_HOME)/include
bypass_LIBS     := -ldl
