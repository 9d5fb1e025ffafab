/* The code that the program has loaded, and the PTX that came with it. Found by the handle of the
 * module or library; machine code alone leaves no trace here.
 *
 * The CUDA runtime since 12.0 loads what compilers register by cuLibraryLoadData. Older ones use
 * functions without a name (cuGetExportTable). Their table cannot be replaced, because the runtime
 * checks where it lies, so their kernels run natively. */
#pragma once

#include "preempt/image.h"
#include "shim/driver.h"

/* Code was loaded from @data; @size 0: not known. @library: a CUlibrary, else a CUmodule of the
 * current context. */
void code_loaded(const void *handle, bool library, const void *data, size_t size);

/* @module is the part of @library in the current context, and is unloaded with it. */
void code_part_of(CUlibrary library, CUmodule module);

/* The linker of the driver has made @data from inputs with PTX: @image, or NULL if they cannot be
 * one text. */
void code_linked(const void *data, size_t size, struct image *image);

/* The PTX of a CUmodule or CUlibrary, for image_unref(). NULL: none, for the reason in @reason. */
struct image *code_image(const void *handle, const char **reason);

/* Before code is unloaded: calls @unload for it and for its parts. */
void code_unload(const void *handle, void (*unload)(const void *handle));

struct code;

/* Before the context ends: takes out the records of its modules. NULL: there are none. */
struct code *code_take(CUcontext context);
/* Afterwards, with what code_take() returned: the context has ended; */
void code_forget(struct code *gone);
/* or it has not. */
void code_put_back(struct code *taken);

/* In a forked child. */
void code_fork(void);
