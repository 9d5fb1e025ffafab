# The forms against the interpreter: the same memory, whatever the schedule of evictions.
UNIT_TESTS += test-forms
test-forms_SRC    := $(addprefix e2e/forms/,test-forms.c run.c generate.c)
test-forms_STATIC := libweir-transform simptx
test-forms_LIBS   := $(TRANSFORM_LIBS) -lcmocka -lm
