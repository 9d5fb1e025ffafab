/* A kernel's way through the compile service: what is sent there, and what is made of the answer.
 * On the worker, with the client's context current. */
#pragma once

#include "preempt/function.h"
#include "preempt/image.h"

/* The sealed file of a request (struct weir_compile_file) for an image of PTX alone, or a negative
 * errno. @registers: of a thread of the kernel; 0: not known. */
int rewrite_request(const struct image *image, const char *kernel, unsigned sm, unsigned registers);

#define REWRITE_TEXT 512

/* Loads the object in @file beside the program's code. NULL: not a form of it can be used. @text
 * says why, or which forms there are. */
const struct rewritten *rewrite_load(const struct function *function, const char *kernel,
				     unsigned sm, int file, char text[REWRITE_TEXT]);

/* The function that is launched in this context: what is asked about a kernel must be asked about
 * it. NULL: the driver does not say. */
CUfunction rewrite_original(const struct function *function);

/* Gives the variants the attributes that the program gave its kernel. False: one cannot have them.
 */
bool rewrite_follow(const struct function *function, const struct rewritten *rewritten);

/* The module goes, unless its context does or it is to stay. A launch that has just read it may
 * still do so for a while. NULL is fine. */
void rewrite_unload(const struct rewritten *rewritten, bool module);

/* In a forked child. */
void rewrite_forget_all(void);
