/* Kernels whose forms are wanted, and answers of a compile service. */
#pragma once

#include "inside.h"

#include "preempt/forms.h"

#include "weir/object.h"

#define PTX ".version 8.0\n.target sm_90\n.address_size 64\n// a test\n"

CUmodule load(const void *image);
CUfunction get(CUmodule module, const char *name);
/* Wants it in the last context. */
struct function *wanted(CUfunction handle);
bool becomes(struct function *function, enum function_state state);

/* The last object that was made. */
extern struct made_object {
	_Alignas(8) char bytes[4096];
	uint32_t size;
} object;

/* In two builds persistent, resumable refused; with a variable and a constant. */
struct weir_object *make_object(const char *kernel, const char *entry);

/* Takes a request for @kernel and answers it with an object that is as it should be. */
void answer_well(const char *kernel);
/* Takes a request and answers that there is none. */
void answer(uint32_t status);
