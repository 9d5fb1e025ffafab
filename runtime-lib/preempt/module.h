/* Code that the program has loaded, in whatever way, and the PTX that came with it. Found by the
 * handle of the module or library; machine code alone leaves no trace here.
 *
 * The CUDA runtime since 12.0 loads what compilers register by cuLibraryLoadData. Older ones do so
 * by functions without a name (cuGetExportTable), whose table cannot be replaced, since the runtime
 * checks where it lies: their kernels run as they are. */
#pragma once

#include "shim/driver.h"
#include "preempt/image.h"

/* The PTX of a CUmodule or CUlibrary, for image_unref(). NULL: none, and why is in @reason. */
struct image *module_image(const void *code, const char **reason);

/* The driver's linker (linker.c) has made @data of one input with PTX, @image, or of several: NULL.
 */
void module_linked(const void *data, size_t size, struct image *image);

/* The context goes, and its modules with it. */
void module_forget(CUcontext context);

/* In a forked child. */
void module_forget_all(void);
void linker_forget_all(void);
