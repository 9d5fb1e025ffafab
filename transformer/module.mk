# PTX in, PTX with kernels that can leave out. It knows nothing of the other folders.
LIBRARIES += libweir-transform
libweir-transform_SRC := $(addprefix transformer/,arena.c barrier.c callee.c cfg.c diag.c edit.c edit-code.c emit.c fatbin.c image.c \
	intern.c ir.c lex.c live.c meet.c opcode.c parse.c parse-declaration.c parse-operand.c parse-statement.c \
	pass.c pass-block-index.c pass-eligible.c pass-params.c pass-tickets.c pass-uniform-exit.c scope.c text.c transform.c uniform.c verify.c)
TRANSFORM_LIBS := -l:liblz4.a -l:libzstd.a

PROGRAMS += weir-transform
weir-transform_SRC    := transformer/main.c
weir-transform_STATIC := libweir-transform
weir-transform_LIBS   := $(TRANSFORM_LIBS)

FUZZERS += fuzz-transform fuzz-roundtrip fuzz-fatbin
# Each with its own copy of the library: the fuzzer wants to see where it goes.
$(foreach f,fuzz-transform fuzz-roundtrip fuzz-fatbin,\
	$(eval $f_SRC := transformer/tests/fuzz/$f.c $(libweir-transform_SRC))\
	$(eval $f_LIBS := $(TRANSFORM_LIBS)))

TRANSFORM_TESTS := $(addprefix test-transform-,text parse flow edit image)
UNIT_TESTS += $(TRANSFORM_TESTS)
$(foreach t,$(TRANSFORM_TESTS),$(eval $t_SRC := transformer/tests/$t.c)\
	$(eval $t_STATIC := libweir-transform)$(eval $t_CFLAGS := -Wno-unused-parameter)\
	$(eval $t_LIBS := -lcmocka $(TRANSFORM_LIBS)))
