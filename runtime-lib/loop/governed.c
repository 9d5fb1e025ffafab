#include "loop/governed.h"

#include "weir/loop-link.h"

#include <dlfcn.h>
#include <string.h>

#define WORDS_AGAIN_NS 1000000u /* between two looks whether the words are others */

static struct {
	weir_loops_begin_function *begin;
	weir_loops_end_function *end;
	weir_loops_gate_function *gate;
	weir_loops_words_function *words;
	weir_loops_left_function *left;
} libweir;

/* Finds all functions or none. Several loops may do so at once, with the same result. */
static bool find(void)
{
	static const char *const names[] = {"weir_loops_begin", "weir_loops_end", "weir_loops_gate",
					    "weir_loops_words", "weir_loops_left"};
	void *found[sizeof(names) / sizeof(names[0])];

	_Static_assert(sizeof(found) == sizeof(libweir), "as many functions as names");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		found[i] = dlsym(RTLD_DEFAULT, names[i]);
		if (!found[i])
			return false;
	}
	memcpy(&libweir, found, sizeof(libweir));
	return true;
}

void governed_find(struct weir_loop *loop)
{
	loop->governable = find();
}

void governed_begin(struct weir_loop *loop)
{
	loop->state.size = sizeof(loop->state);
	loop->governed = loop->governable;
	if (loop->governed)
		libweir.begin(loop->gpu.stream, &loop->state);
}

void governed_end(struct weir_loop *loop)
{
	if (loop->governed)
		libweir.end(loop->gpu.stream, &loop->state);
	loop->governed = false;
}

void governed_launch(struct weir_loop *loop, struct weir_loop_args *args)
{
	struct weir_loop_words words = {0};

	if (!loop->governed)
		return;
	if (libweir.gate(loop->gpu.stream, &words))
		words = (struct weir_loop_words){0};
	loop->words = words;
	args->demand = (const uint64_t *)(uintptr_t)words.demand;
	args->demand_mask = words.demand_mask;
	args->hold = (const uint32_t *)(uintptr_t)words.hold;
}

void governed_left(struct weir_loop *loop)
{
	if (loop->governed)
		libweir.left(loop->gpu.stream);
}

bool governed_changed(struct weir_loop *loop, uint64_t now)
{
	struct weir_loop_words words = {0};

	if (!loop->governed || now < loop->words_again)
		return false;
	loop->words_again = now + WORDS_AGAIN_NS;
	if (libweir.words(loop->gpu.stream, &words))
		words = (struct weir_loop_words){0};
	return memcmp(&words, &loop->words, sizeof(words)) != 0;
}
