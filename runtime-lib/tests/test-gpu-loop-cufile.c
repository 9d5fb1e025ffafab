/* loop/cufile.h declares a part of libcufile, so that the build needs none of it. Here it is
 * compared with NVIDIA's header and library, where they are: `make setup` unpacks them. */
#include "loop/cufile.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#if __has_include(<cufile.h>)
#include <cufile.h>
#define HAS_HEADER 1

#define SAME_SIZE(a, b) _Static_assert(sizeof(a) == sizeof(b), "size")
#define SAME_PLACE(a, in_a, b, in_b) \
	_Static_assert(offsetof(a, in_a) == offsetof(b, in_b), "offset of " #in_b)
/* Return value and parameters. Handles are pointers, errors are structures of the same layout. */
#define SAME_FUNCTION(function, type) \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&(function)), type), #function)

SAME_SIZE(struct cufile_error, CUfileError_t);
SAME_PLACE(struct cufile_error, error, CUfileError_t, err);
SAME_PLACE(struct cufile_error, driver, CUfileError_t, cu_err);
SAME_SIZE(struct cufile_description, CUfileDescr_t);
SAME_PLACE(struct cufile_description, type, CUfileDescr_t, type);
SAME_PLACE(struct cufile_description, handle.fd, CUfileDescr_t, handle.fd);
SAME_PLACE(struct cufile_description, operations, CUfileDescr_t, fs_ops);
SAME_SIZE(void *, CUfileHandle_t);
_Static_assert(CU_FILE_HANDLE_TYPE_OPAQUE_FD == 1, "OPAQUE_FD of cufile.c");
_Static_assert(CU_FILE_SUCCESS == 0, "an error of 0 is success");
SAME_FUNCTION(cuFileDriverOpen, CUfileError_t (*)(void));
SAME_FUNCTION(cuFileDriverClose, CUfileError_t (*)(void));
SAME_FUNCTION(cuFileHandleRegister, CUfileError_t (*)(CUfileHandle_t *, CUfileDescr_t *));
SAME_FUNCTION(cuFileHandleDeregister, void (*)(CUfileHandle_t));
SAME_FUNCTION(cuFileRead, __typeof__(((struct cufile *)0)->read));
SAME_FUNCTION(cuFileWrite, __typeof__(((struct cufile *)0)->write));
#else
#define HAS_HEADER 0
#endif

/* False: it is nowhere. */
static bool find_library(char *path, size_t size)
{
	static const char *const folders[] = {"lib", "lib64"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, size, "%s/%s/libcufile.so.0", TOOLKIT, folders[i]);
		if (access(path, R_OK) == 0)
			return true;
	}
	return false;
}

static void the_header_is_compared(void **state)
{
	(void)state;
	if (!HAS_HEADER)
		skip();
}

static void the_library_has_what_is_used(void **state)
{
	static const char *const used[] = {"cuFileDriverOpen",     "cuFileDriverClose_v2",
					   "cuFileHandleRegister", "cuFileHandleDeregister",
					   "cuFileRead",           "cuFileWrite"};
	char path[512];

	(void)state;
	if (!find_library(path, sizeof(path)))
		skip();
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fail_msg("%s", dlerror());
	for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++)
		assert_non_null(dlsym(library, used[i]));
	dlclose(library);
}

/* Without a GPU it does not start, and nothing is used. With one, it starts and ends. */
static void the_library_may_not_start(void **state)
{
	struct cufile cufile;
	char path[512];

	(void)state;
	if (!find_library(path, sizeof(path)))
		skip();
	setenv("CUFILE_LOGFILE_PATH", "/dev/null", 1);
	for (int i = 0; i < 2; i++) {
		cufile_init(&cufile, path);
		if (!cufile.library)
			assert_null(cufile_add(&cufile, 0));
		cufile_deinit(&cufile);
		assert_null(cufile.library);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_header_is_compared),
		cmocka_unit_test(the_library_has_what_is_used),
		cmocka_unit_test(the_library_may_not_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
