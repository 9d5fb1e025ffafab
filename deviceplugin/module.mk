# weir-device-plugin, and its tests.
DEVICEPLUGIN_CPPFLAGS := -Iagent/include -Ideviceplugin -I$(GEN)/deviceplugin -isystem $(CUDA_HOME)/include
DEVICEPLUGIN_PB       := $(GEN)/deviceplugin/deviceplugin-v1beta1.pb-c
DRA_PB                := $(GEN)/deviceplugin/dra-v1.pb-c
DEVICEPLUGIN_DEPS     := $(DEVICEPLUGIN_PB).h $(DRA_PB).h
.SECONDARY: $(DEVICEPLUGIN_PB).c $(DEVICEPLUGIN_PB).h $(DRA_PB).c $(DRA_PB).h

# The kubelet's messages: protobuf-c generates C from proto/.
$(GEN)/deviceplugin/%.pb-c.c $(GEN)/deviceplugin/%.pb-c.h: deviceplugin/proto/%.proto | $(SETUP_STAMP)
	@mkdir -p $(@D)
	$(Q)protoc-c --c_out=$(@D) --proto_path=$(<D) $<

# Everything except main(), for the tests. kubelet-rpc: gRPC and messages, also for the tests' kubelet.
LIBRARIES += kubelet-rpc plugin
kubelet-rpc_SRC       := $(wildcard deviceplugin/rpc/*.c) deviceplugin/codec.c deviceplugin/deviceplugin-v1beta1.pb-c.c \
                         deviceplugin/dra-v1.pb-c.c
kubelet-rpc_DEPS      := $(DEVICEPLUGIN_DEPS)
kubelet-rpc_CPPFLAGS  := $(DEVICEPLUGIN_CPPFLAGS)
plugin_SRC      := $(addprefix deviceplugin/,plugin.c metrics.c service.c inventory.c allocator.c \
                   container-spec.c cdi.c driver.c config.c library-hold.c) $(wildcard deviceplugin/dra/*.c)
plugin_DEPS     := $(DEVICEPLUGIN_DEPS)
plugin_CPPFLAGS := $(DEVICEPLUGIN_CPPFLAGS)

PROGRAMS += weir-device-plugin
weir-device-plugin_SRC      := deviceplugin/main.c
weir-device-plugin_DEPS     := $(DEVICEPLUGIN_DEPS)
weir-device-plugin_CPPFLAGS := $(DEVICEPLUGIN_CPPFLAGS)
weir-device-plugin_STATIC   := plugin kubelet-rpc api-client node base
weir-device-plugin_LIBS     := -lgrpc -lgpr -lprotobuf-c $(KUBERNETES_LIBS) -lmicrohttpd -ldl

# A fake NVML for tests.
SHARED += libfake-nvml.so
libfake-nvml.so_SRC      := deviceplugin/tests/fake-nvml.c
libfake-nvml.so_CPPFLAGS := -isystem $(CUDA_HOME)/include
libfake-nvml.so_CFLAGS   := -Wno-missing-prototypes

# Libraries of the tests.
DEVICEPLUGIN_STATIC := plugin kubelet-rpc api-client node base
DEVICEPLUGIN_LIBS   := -lcmocka -lgrpc -lgpr -lprotobuf-c $(KUBERNETES_LIBS) -lmicrohttpd -ldl

# The plugin as a process.
PLUGIN_TESTS        := test-plugin test-plugin-gpus test-plugin-kubelet
DEVICEPLUGIN_TESTS  := test-allocator test-cdi test-claims test-codec test-container-spec test-inventory test-library-hold test-plugin-config $(PLUGIN_TESTS)
UNIT_TESTS += $(DEVICEPLUGIN_TESTS)
# qemu cannot execute programs, and looks for absolute links in the root folder of its libraries.
UNEMULATED += $(PLUGIN_TESTS) test-container-spec
$(foreach t,$(DEVICEPLUGIN_TESTS),$(eval $t_SRC      := deviceplugin/tests/$t.c))
$(foreach t,$(DEVICEPLUGIN_TESTS),$(eval $t_DEPS     := $(DEVICEPLUGIN_DEPS)))
$(foreach t,$(DEVICEPLUGIN_TESTS),$(eval $t_CPPFLAGS := $(DEVICEPLUGIN_CPPFLAGS)))
$(foreach t,$(DEVICEPLUGIN_TESTS),$(eval $t_STATIC   := $(DEVICEPLUGIN_STATIC)))
$(foreach t,$(DEVICEPLUGIN_TESTS),$(eval $t_LIBS     := $(DEVICEPLUGIN_LIBS)))
$(foreach t,$(PLUGIN_TESTS),$(eval $t_SRC += $(addprefix deviceplugin/tests/,fake-kubelet.c plugin-fixture.c)))
# Programs and libraries that the tests run or load.
$(PLUGIN_TESTS:%=$(B)/tests/%): | $(B)/bin/weir-device-plugin
$(PLUGIN_TESTS:%=$(B)/tests/%) $(B)/tests/test-inventory: | $(B)/lib/libfake-nvml.so

BENCHES += bench-allocate
bench-allocate_SRC      := deviceplugin/tests/bench-allocate.c deviceplugin/tests/fake-kubelet.c
bench-allocate_DEPS     := $(DEVICEPLUGIN_DEPS)
bench-allocate_CPPFLAGS := $(DEVICEPLUGIN_CPPFLAGS)
bench-allocate_STATIC   := $(DEVICEPLUGIN_STATIC)
bench-allocate_LIBS     := $(DEVICEPLUGIN_LIBS)
$(B)/bench/bench-allocate: | $(B)/bin/weir-device-plugin

# From sources, not libraries, so that libFuzzer sees their branches.
FUZZERS += fuzz-claims fuzz-codec fuzz-plugin-config
fuzz-claims_SRC             := deviceplugin/tests/fuzz/fuzz-claims.c deviceplugin/dra/claim-parse.c \
                               agent/kubernetes/claims.c agent/common/units.c
fuzz-claims_CPPFLAGS        := $(DEVICEPLUGIN_CPPFLAGS)
fuzz-claims_STATIC          := base
fuzz-claims_LIBS            := -lcjson
fuzz-codec_SRC              := deviceplugin/tests/fuzz/fuzz-codec.c deviceplugin/codec.c \
                               deviceplugin/deviceplugin-v1beta1.pb-c.c
fuzz-codec_DEPS             := $(DEVICEPLUGIN_DEPS)
fuzz-codec_CPPFLAGS         := $(DEVICEPLUGIN_CPPFLAGS)
fuzz-codec_LIBS             := -lprotobuf-c
fuzz-plugin-config_SRC      := deviceplugin/tests/fuzz/fuzz-plugin-config.c deviceplugin/config.c \
                               agent/nvml/health.c agent/nvml/xid.c agent/common/yaml.c agent/common/units.c agent/common/gpu-select.c
fuzz-plugin-config_CPPFLAGS := $(DEVICEPLUGIN_CPPFLAGS)
fuzz-plugin-config_STATIC   := base
fuzz-plugin-config_LIBS     := -lyaml

# Scripts and chart that install it on a node.
SHELL_TESTS += deploy/tests/install-runtime.sh deploy/tests/remove-runtime.sh deploy/tests/remove-versions.sh deploy/tests/unlabel-nodes.sh deploy/tests/images.sh deploy/tests/release.sh deploy/tests/pages.sh charts/weir/tests/render.sh charts/weir/tests/monitoring.sh

# A kubelet's calls to the driver, for e2e/cluster/tests/dra-nodes.sh.
PROGRAMS += dra-call
dra-call_SRC      := deviceplugin/tests/dra-call.c
dra-call_DEPS     := $(DEVICEPLUGIN_DEPS)
dra-call_CPPFLAGS := $(DEVICEPLUGIN_CPPFLAGS)
dra-call_STATIC   := kubelet-rpc node base
dra-call_LIBS     := -lgrpc -lgpr -lprotobuf-c
