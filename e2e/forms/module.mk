# The forms on the interpreter: any schedule of evictions must leave the same memory.
FORMS_TESTS := test-forms test-forms-masks test-forms-async test-forms-odd test-forms-shared
UNIT_TESTS += $(FORMS_TESTS)
# An hour under qemu.
UNEMULATED += test-forms
$(foreach t,$(FORMS_TESTS),$(eval $t_SRC := $(addprefix e2e/forms/,$t.c agree.c run.c launch.c persistent.c random.c) $(wildcard e2e/forms/generator/*.c))\
	$(eval $t_STATIC := libweir-transform simptx)\
	$(eval $t_LIBS := $(TRANSFORM_LIBS) -lcmocka -lm))

# These need no random kernels.
FORMS_PLAIN := test-forms-quota test-forms-calls test-forms-looks
UNIT_TESTS += $(FORMS_PLAIN)
$(foreach t,$(FORMS_PLAIN),$(eval $t_SRC := $(addprefix e2e/forms/,$t.c load.c))$(eval $t_STATIC := libweir-transform simptx)\
	$(eval $t_LIBS := $(TRANSFORM_LIBS) -lcmocka -lm))

# A launcher to preload: runs workloads in forms and evicts them; they check their own results.
SHARED += evict.so
evict.so_SRC      := e2e/forms/evict.c e2e/forms/random.c
evict.so_CPPFLAGS := -I$(CUDA_HOME)/include
evict.so_STATIC   := libweir-transform
evict.so_LIBS     := $(TRANSFORM_LIBS) -ldl
# The workload provides the symbols of the driver.
evict.so_LDFLAGS  := -Wl,-z,undefs
SHELL_TESTS += e2e/forms/workloads.sh e2e/forms/ptxas.sh
