# The forms against the interpreter: the same memory, whatever the schedule of evictions.
UNIT_TESTS += test-forms
test-forms_SRC    := $(addprefix e2e/forms/,test-forms.c run.c generate.c)
test-forms_STATIC := libweir-transform simptx
test-forms_LIBS   := $(TRANSFORM_LIBS) -lcmocka -lm

# A launcher to be preloaded: workloads check their own results, in forms and evicted.
SHARED += evict.so
evict.so_SRC      := e2e/forms/evict.c e2e/forms/generate.c
evict.so_CPPFLAGS := -I$(CUDA_HOME)/include
evict.so_STATIC   := libweir-transform
evict.so_LIBS     := $(TRANSFORM_LIBS) -ldl
# The symbols of the driver that the workload brings.
evict.so_LDFLAGS  := -Wl,-z,undefs
SHELL_TESTS += e2e/forms/workloads.sh e2e/forms/ptxas.sh
