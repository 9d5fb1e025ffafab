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
	struct arena arena, body_arena, scratch;
	struct diag diag;
	struct module module;
};

static inline void fixture_parse(struct fixture *x, const char *text)
{
	memset(x, 0, sizeof(*x));
	arena_init(&x->arena, 64 << 20, &x->diag);
	arena_init(&x->body_arena, 64 << 20, &x->diag);
	arena_init(&x->scratch, 64 << 20, &x->diag);
	parse_module(&x->module, &x->arena, text, strlen(text));
}

struct fixture_call {
	struct fixture *x;
	struct function *f;
};

static inline void fixture_parse_body(void *data)
{
	struct fixture_call *call = data;

	parse_body(call->f, &call->x->body_arena);
}

/* 0, or the error. */
static inline int fixture_body(struct fixture *x, struct function *f)
{
	return diag_try(&x->diag, fixture_parse_body, &(struct fixture_call){x, f});
}

static inline void fixture_verify_function(void *data)
{
	struct fixture_call *call = data;

	verify_function(call->f, &call->x->scratch);
}

/* 0, or the error. */
static inline int fixture_verify(struct fixture *x, struct function *f)
{
	return diag_try(&x->diag, fixture_verify_function, &(struct fixture_call){x, f});
}

static inline void fixture_deinit(struct fixture *x)
{
	arena_deinit(&x->arena);
	arena_deinit(&x->body_arena);
	arena_deinit(&x->scratch);
}

/* The first function of @text, with its body. @text must be well formed. */
static inline struct function *fixture_function(struct fixture *x, const char *text)
{
	fixture_parse(x, text);
	if (!x->diag.error)
		fixture_body(x, x->module.functions);
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
