#include "entry/linker.h"

#include "preempt/code.h"
#include "shim/thread.h"

struct linker {
	struct linker *next;
	CUlinkState handle;
	unsigned inputs;     /* with PTX */
	struct image *image; /* all of them; NULL: none, or they cannot be one text */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* never held over a driver call */
static struct linker *linkers;

static struct linker **find(CUlinkState handle)
{
	struct linker **at = &linkers;

	while (*at && (*at)->handle != handle)
		at = &(*at)->next;
	return at;
}

static void created(CUlinkState handle)
{
	struct linker *linker = calloc(1, sizeof(*linker));

	if (!linker)
		return;
	linker->handle = handle;
	locked(&lock);
	linker->next = linkers;
	linkers = linker;
}

static void add(struct linker *linker, struct image *image)
{
	struct image *former = linker->image;

	if (linker->inputs++ == 0)
		linker->image = image_ref(image);
	else
		linker->image = former ? image_join(former, image) : NULL;
	image_unref(former);
}

/* Takes over @image, which may be NULL. */
static void added(CUlinkState handle, struct image *image)
{
	if (!image)
		return;
	locked(&lock);
	struct linker *linker = *find(handle);
	if (linker)
		add(linker, image);
	image_unref(image);
}

static void completed(CUlinkState handle, const void *code, size_t size)
{
	struct image *image = NULL;
	unsigned inputs = 0;

	pthread_mutex_lock(&lock);
	struct linker *linker = *find(handle);
	if (linker) {
		inputs = linker->inputs;
		image = image_ref(linker->image);
	}
	pthread_mutex_unlock(&lock);
	if (inputs)
		code_linked(code, size, image);
	image_unref(image);
}

static void destroyed(CUlinkState handle)
{
	locked(&lock);
	struct linker **at = find(handle), *linker = *at;
	if (!linker)
		return;
	*at = linker->next;
	image_unref(linker->image);
	free(linker);
}

void linker_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	linkers = NULL;
}

#define CREATE(name)                                                           \
	EXPORT CUresult name(unsigned n, CUjit_option *options, void **values, \
			     CUlinkState *handle)                              \
	{                                                                      \
		driver_ready();                                                \
		CUresult result = real(name)(n, options, values, handle);      \
                                                                               \
		if (result == CUDA_SUCCESS && handle)                          \
			created(*handle);                                      \
		return result;                                                 \
	}
#define ADD_DATA(name)                                                                             \
	EXPORT CUresult name(CUlinkState handle, CUjitInputType type, void *data, size_t size,     \
			     const char *label, unsigned n, CUjit_option *options, void **values)  \
	{                                                                                          \
		driver_ready();                                                                    \
		CUresult result = real(name)(handle, type, data, size, label, n, options, values); \
                                                                                                   \
		if (result == CUDA_SUCCESS && size)                                                \
			added(handle, image_keep(data, size));                                     \
		return result;                                                                     \
	}
#define ADD_FILE(name)                                                                  \
	EXPORT CUresult name(CUlinkState handle, CUjitInputType type, const char *path, \
			     unsigned n, CUjit_option *options, void **values)          \
	{                                                                               \
		driver_ready();                                                         \
		CUresult result = real(name)(handle, type, path, n, options, values);   \
                                                                                        \
		if (result == CUDA_SUCCESS)                                             \
			added(handle, image_keep_file(path));                           \
		return result;                                                          \
	}
CREATE(cuLinkCreate)
CREATE(cuLinkCreate_v2)
ADD_DATA(cuLinkAddData)
ADD_DATA(cuLinkAddData_v2)
ADD_FILE(cuLinkAddFile)
ADD_FILE(cuLinkAddFile_v2)

EXPORT CUresult cuLinkComplete(CUlinkState handle, void **code, size_t *size)
{
	driver_ready();
	CUresult result = real(cuLinkComplete)(handle, code, size);

	if (result == CUDA_SUCCESS && code && size)
		completed(handle, *code, *size);
	return result;
}

EXPORT CUresult cuLinkDestroy(CUlinkState handle)
{
	driver_ready();
	destroyed(handle);
	return real(cuLinkDestroy)(handle);
}
