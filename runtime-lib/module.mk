# Linked into every program.
LIBRARIES += base
base_SRC := runtime-lib/base/error.c runtime-lib/base/log.c runtime-lib/base/protocol.c

# The library in the tenant's process. Its SONAME is the driver's.
SHARED += libweir.so
libweir.so_SRC := $(addprefix runtime-lib/,capture.c client.c demand.c driver.c entry.c gate.c kernel.c \
	launch.c lifetime.c link.c pages.c sample.c stream.c sync.c thread.c worker.c) \
	forward.S
libweir.so_STATIC   := base
libweir.so_CPPFLAGS := -Iruntime-lib -isystem $(CUDA_HOME)/include
libweir.so_CFLAGS   := -ftls-model=initial-exec -Wno-deprecated-declarations
libweir.so_DEPS     := $(GEN)/forward-names.inc
libweir.so_LDFLAGS  := -Wl,-soname,libcuda.so.1 -Wl,--exclude-libs,ALL
libweir.so_LIBS     := -ldl

$(GEN)/driver-symbols.txt: runtime-lib/gen-forward.sh runtime-lib/driver-exports.txt $(CUDA_HOME)/include/cuda.h
	@mkdir -p $(@D)
	$(Q)runtime-lib/gen-forward.sh symbols $(CUDA_HOME)/include > $@
$(GEN)/forward.S: $(GEN)/driver-symbols.txt runtime-lib/hooks.def runtime-lib/gen-forward.sh
	$(Q)runtime-lib/gen-forward.sh assembly $< runtime-lib/hooks.def > $@
$(GEN)/forward-names.inc: $(GEN)/driver-symbols.txt runtime-lib/hooks.def runtime-lib/gen-forward.sh
	$(Q)runtime-lib/gen-forward.sh names $< runtime-lib/hooks.def > $@
$(CUDA_HOME)/include/cuda.h: | $(SETUP_STAMP)
