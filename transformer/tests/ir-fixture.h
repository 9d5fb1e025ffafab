/* A parsed module, for tests of code that works on the IR. */
#pragma once

#include "analysis/cfg.h"
#include "analysis/live.h"
#include "syntax/edit.h"
#include "syntax/emit.h"
#include "syntax/parse.h"
#include "syntax/verify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

struct fixture {
	struct arena arena, body_arena;
	struct diag diag;
	struct module module;
};

static inline void fixture_parse(struct fixture *x, const char *text)
{
	memset(x, 0, sizeof(*x));
	arena_init(&x->arena, 64 << 20);
	arena_init(&x->body_arena, 64 << 20);
	parse_module(&x->module, &x->arena, &x->diag, text, strlen(text));
}

static inline void fixture_deinit(struct fixture *x)
{
	arena_deinit(&x->arena);
	arena_deinit(&x->body_arena);
}

/* The first function of @text, with its body. @text must be well formed. */
static inline struct function *fixture_function(struct fixture *x, const char *text)
{
	fixture_parse(x, text);
	if (!x->diag.error)
		parse_body(x->module.functions, &x->body_arena, &x->diag);
	if (x->diag.error)
		fail_msg("line %u: %s", x->diag.at.line, x->diag.message);
	return x->module.functions;
}

static inline struct block *fixture_block(struct function *f, const char *label)
{
	for (struct block *b = f->entry; b; b = b->next)
		if (b->label && !strcmp(b->label, label))
			return b;
	fail_msg("there is no block %s", label);
	return NULL;
}

static inline struct reg *fixture_reg(struct function *f, const char *name)
{
	for (struct reg *r = f->regs; r; r = r->next)
		if (!strcmp(r->name, name))
			return r;
	fail_msg("there is no register %s", name);
	return NULL;
}
