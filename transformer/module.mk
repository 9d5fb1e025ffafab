# The compiler from PTX to PTX. It depends on no other folder.
LIBRARIES += libweir-transform
libweir-transform_SRC := $(foreach room,syntax analysis passes passes/async passes/quota passes/save passes/tickets pipeline image,$(wildcard transformer/$(room)/*.c))
TRANSFORM_LIBS := -l:liblz4.a -l:libzstd.a

PROGRAMS += weir-transform
weir-transform_SRC    := transformer/main.c
weir-transform_STATIC := libweir-transform
weir-transform_LIBS   := $(TRANSFORM_LIBS)

TRANSFORM_FUZZERS := fuzz-transform fuzz-roundtrip fuzz-fatbin fuzz-object-build
FUZZERS += $(TRANSFORM_FUZZERS) fuzz-object
# Each compiles the library itself, because libFuzzer instruments what it fuzzes.
$(foreach f,$(TRANSFORM_FUZZERS),\
	$(eval $f_SRC := transformer/tests/fuzz/$f.c $(libweir-transform_SRC))\
	$(eval $f_LIBS := $(TRANSFORM_LIBS)))

fuzz-object_SRC := transformer/tests/fuzz/fuzz-object.c transformer/image/object-check.c

TRANSFORM_TESTS := $(addprefix test-transform-,text parse flow edit image object object-check save shared size tickets async)
UNIT_TESTS += $(TRANSFORM_TESTS)
UNEMULATED += test-transform-size
$(foreach t,$(TRANSFORM_TESTS),$(eval $t_SRC := transformer/tests/$t.c)\
	$(eval $t_STATIC := libweir-transform)\
	$(eval $t_LIBS := -lcmocka $(TRANSFORM_LIBS)))

SHELL_TESTS += transformer/tests/golden.sh transformer/tests/real.sh
FEATURES := $(foreach a,75 90 120,$(GEN)/transformer/features-$a.ptx)
EXTRA += $(FEATURES)
$(FEATURES): $(GEN)/transformer/features-%.ptx: transformer/tests/features.cu | $(SETUP_STAMP)
	@mkdir -p $(@D)
	@echo "  NVCC    $@"
	$(Q)$(NVCC) -ptx -std=c++17 -lineinfo -diag-suppress 20054 -arch=compute_$* -o $@ $<

# The interpreter's test of nvcc's output, run on the same PTX after --reprint.
REPRINTS := $(foreach a,75 90 120,$(GEN)/reprint/kernels-$a.ptx)
$(REPRINTS): $(GEN)/reprint/%: $(GEN)/simcuda/% $(B)/bin/weir-transform
	@mkdir -p $(@D)
	$(Q)$(EMULATOR) $(B)/bin/weir-transform --reprint $< $@
UNIT_TESTS += test-transform-reprint
test-transform-reprint_SRC      := e2e/simcuda/tests/test-ptx-nvcc.c e2e/simcuda/tests/ptx-fixture.c
test-transform-reprint_STATIC   := simptx
test-transform-reprint_CPPFLAGS := -DPTX_KERNELS='"$(GEN)/reprint/kernels"'
test-transform-reprint_DEPS     := $(REPRINTS)
test-transform-reprint_LIBS     := -lcmocka -lm
