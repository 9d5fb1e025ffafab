#include "preempt/rewrite.h"

#include "shim/thread.h"

#include "weir/file.h"
#include "weir/log.h"
#include "weir/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#define FORMS        (1u << WEIR_SLICED | 1u << WEIR_PERSISTENT | 1u << WEIR_RESUMABLE)
#define KEPT_FOR     NS_PER_S /* ns that a launch may take */
#define ARGUMENT_MAX 32764u   /* bytes of all parameters of a kernel */

/* The tables follow it. */
struct loaded {
	struct rewritten rewritten;
	struct loaded *next; /* in `kept`, oldest first */
	uint64_t until;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* never held over a driver call */
static struct loaded *kept;

static bool write_all(int file, const void *data, size_t size, off_t at)
{
	while (size) {
		ssize_t n = pwrite(file, data, size, at);
		if (n <= 0 && errno != EINTR)
			return false;
		if (n > 0) {
			data = (const char *)data + n;
			size -= (size_t)n;
			at += n;
		}
	}
	return true;
}

int rewrite_request(const struct image *image, const char *kernel, unsigned sm, unsigned registers,
		    uint32_t flags)
{
	struct weir_compile_file header = {
		.magic = WEIR_COMPILE_MAGIC,
		.version = WEIR_PROTOCOL_VERSION,
		.sm = sm,
		.forms = FORMS,
		.name = sizeof(header),
		.name_size = strnlen(kernel, WEIR_KERNEL_NAME_MAX) + 1,
		.image_size = image->size,
		.registers = registers,
		.flags = flags,
	};

	header.image = (header.name + header.name_size + 7) & ~7ull;
	if (header.name_size > WEIR_KERNEL_NAME_MAX ||
	    header.image + header.image_size > WEIR_COMPILE_FILE_MAX)
		return -E2BIG;
	cleanup(closep) int file =
		(int)syscall(SYS_memfd_create, "weir-compile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (file < 0 || !write_all(file, &header, sizeof(header), 0) ||
	    !write_all(file, kernel, header.name_size, (off_t)header.name) ||
	    !write_all(file, image->bytes, image->size, (off_t)header.image) ||
	    fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return errno ? -errno : -EIO;
	return take_fd(file);
}

/* A copy: nobody can change it while it is checked. */
static struct weir_object *read_object(int file)
{
	size_t size;
	cleanup(freep) void *data = file_load(file, WEIR_OBJECT_MAX, &size);

	return data && weir_object_check(data, size) == 0 ? take(data) : NULL;
}

static const void *at(const struct weir_object *object, uint32_t offset)
{
	return (const char *)object + offset;
}

static const struct weir_object_form *forms_of(const struct weir_object *object)
{
	return at(object, object->forms);
}

/* Else there is no code, and the object says why. */
static bool has_form(const struct weir_object *object)
{
	const struct weir_object_form *forms = forms_of(object);
	bool any = false;

	for (uint32_t i = 0; i < object->n_forms; i++)
		any |= forms[i].entry != 0;
	return any;
}

/* Is it the answer to the question, and can it be loaded? NULL: yes. */
static const char *unfit(const struct weir_object *object, const char *kernel, unsigned sm)
{
	const struct weir_object_param *params = at(object, object->params);
	const char *image = at(object, object->image);

	if (object->abi != WEIR_PREEMPT_ABI)
		return "the compile service is of another version";
	if (strcmp(at(object, object->kernel), kernel) != 0 || object->sm != sm)
		return "the compile service answers another question";
	if (object->n_params > PARAMETERS_MAX || object->n_symbols > SYMBOLS_MAX)
		return "too many parameters or variables";
	for (uint32_t i = 0; i < object->n_params; i++) {
		if (params[i].offset > ARGUMENT_MAX ||
		    params[i].size > ARGUMENT_MAX - params[i].offset)
			return "impossible parameters";
	}
	if (!has_form(object))
		return NULL;
	if (object->flags & WEIR_OBJECT_IS_PTX
		    ? !object->image_size || image[object->image_size - 1]
		    : !image_elf_size(image, object->image_size))
		return "the compile service made no code";
	return NULL;
}

/* @text: which forms there are, and why not the others. False: none. */
static bool describe(const struct weir_object *object, char text[REWRITE_TEXT])
{
	const struct weir_object_form *forms = forms_of(object);
	bool any = false;
	size_t n = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < object->n_forms && n < REWRITE_TEXT; i++) {
		const char *name = forms[i].form < WEIR_FORM_COUNT ? form_name(forms[i].form) : "?";
		any |= forms[i].entry != 0;
		int added =
			forms[i].entry
				? snprintf(text + n, REWRITE_TEXT - n, "%s%s", n ? ", " : "", name)
				: snprintf(text + n, REWRITE_TEXT - n, "%snot %s (%s, line %u)",
					   n ? ", " : "", name,
					   forms[i].reason
						   ? (const char *)at(object, forms[i].reason)
						   : "no reason given",
					   forms[i].line);
		n += added > 0 ? (size_t)added : 0;
	}
	return any;
}

static bool is_partial(const struct weir_object *object)
{
	const struct weir_object_form *forms = forms_of(object);
	uint32_t built = 0;

	for (uint32_t i = 0; i < object->n_forms; i++)
		if (forms[i].form < WEIR_FORM_COUNT)
			built |= 1u << forms[i].form;
	return (built & FORMS) != FORMS;
}

static struct loaded *loaded_new(const struct weir_object *object)
{
	size_t params = object->n_params * sizeof(struct weir_object_param);
	size_t symbols = object->n_symbols * sizeof(uint64_t);
	size_t constants = object->n_symbols * sizeof(struct constant_copy);
	struct loaded *loaded = calloc(1, sizeof(*loaded) + params + symbols + constants);

	if (!loaded)
		return NULL;
	char *tables = (char *)(loaded + 1);
	loaded->rewritten.constants = (void *)tables;
	loaded->rewritten.symbols = (void *)(tables + constants);
	loaded->rewritten.params =
		memcpy(tables + constants + symbols, at(object, object->params), params);
	loaded->rewritten.n_params = object->n_params;
	loaded->rewritten.is_partial = is_partial(object);
	loaded->rewritten.is_straight = object->traits & WEIR_OBJECT_IS_STRAIGHT;
	return loaded;
}

static bool find_variable(const struct origin *origin, const char *name, CUdeviceptr *address,
			  size_t *size)
{
	const void *owner = atomic_load(&origin->owner);

	if (!origin->library)
		return real(cuModuleGetGlobal_v2)(address, size, (CUmodule)owner, name) ==
		       CUDA_SUCCESS;
	return real(cuLibraryGetManaged)(address, size, (CUlibrary)owner, name) == CUDA_SUCCESS ||
	       real(cuLibraryGetGlobal)(address, size, (CUlibrary)owner, name) == CUDA_SUCCESS;
}

/* The program's variables, and our copies of constant ones. */
static const char *bind_variables(struct rewritten *rewritten, const struct origin *origin,
				  const struct weir_object *object)
{
	const struct weir_object_symbol *symbols = at(object, object->symbols);
	struct constant_copy *constants = (struct constant_copy *)rewritten->constants;
	uint64_t *addresses = (uint64_t *)rewritten->symbols;

	for (uint32_t i = 0; i < object->n_symbols; i++) {
		CUdeviceptr theirs = 0, ours = 0;
		size_t size = 0, copy = 0;
		if (!find_variable(origin, at(object, symbols[i].name), &theirs, &size) ||
		    !theirs || size < symbols[i].size)
			return "the driver does not tell where one of its variables lies";
		if (symbols[i].space == WEIR_OBJECT_GLOBAL) {
			addresses[rewritten->n_symbols++] = theirs;
			continue;
		}
		if (real(cuModuleGetGlobal_v2)(&ours, &copy, rewritten->module,
					       at(object, symbols[i].copy)) != CUDA_SUCCESS ||
		    copy < symbols[i].size)
			return "the copy of a constant is missing";
		constants[rewritten->n_constants++] =
			(struct constant_copy){ours, theirs, symbols[i].size};
	}
	return NULL;
}

/* For the next build of the form; NULL: there are too many. */
static struct variant *free_variant(struct rewritten *rewritten, uint32_t form)
{
	for (size_t i = 0; i < BUILDS_MAX; i++) {
		if (!rewritten->variants[form][i].function)
			return &rewritten->variants[form][i];
	}
	return NULL;
}

static const char *bind_forms(struct rewritten *rewritten, const struct weir_object *object)
{
	const struct weir_object_form *forms = forms_of(object);

	for (uint32_t i = 0; i < object->n_forms; i++) {
		if (!forms[i].entry || forms[i].form == WEIR_NATIVE ||
		    forms[i].form >= WEIR_FORM_COUNT)
			continue;
		struct variant *variant = free_variant(rewritten, forms[i].form);
		if (!variant)
			continue;
		if (real(cuModuleGetFunction)(&variant->function, rewritten->module,
					      at(object, forms[i].entry)) != CUDA_SUCCESS)
			return "one of its forms is missing";
		variant->save_fixed = forms[i].save_fixed;
		variant->save_per_thread = forms[i].save_per_thread;
	}
	return NULL;
}

CUfunction rewrite_original(const struct origin *origin)
{
	CUfunction original = origin->handle;

	if (origin->library &&
	    real(cuKernelGetFunction)(&original, (CUkernel)origin->handle) != CUDA_SUCCESS)
		return NULL;
	return original;
}

static bool follow(CUfunction original, CUfunction variant, int cache_config)
{
	static const CUfunction_attribute attributes[] = {
		CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
		CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
	};
	int theirs, ours;

	for (size_t i = 0; i < countof(attributes); i++) {
		if (real(cuFuncGetAttribute)(&theirs, attributes[i], original) != CUDA_SUCCESS ||
		    real(cuFuncGetAttribute)(&ours, attributes[i], variant) != CUDA_SUCCESS ||
		    (ours != theirs &&
		     real(cuFuncSetAttribute)(variant, attributes[i], theirs) != CUDA_SUCCESS))
			return false;
	}
	if (cache_config != CU_FUNC_CACHE_PREFER_NONE)
		real(cuFuncSetCacheConfig)(variant, (CUfunc_cache)cache_config); /* a hint */
	return true;
}

/* Whether its blocks are launched in clusters of several. Forms suppose that each is alone
 * (transformer/FORMS.md). Older drivers have no such attributes. */
static bool in_clusters(CUfunction function)
{
	static const CUfunction_attribute attributes[] = {
		CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
		CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
		CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
	};
	int blocks;

	for (size_t i = 0; i < countof(attributes); i++)
		if (real(cuFuncGetAttribute)(&blocks, attributes[i], function) == CUDA_SUCCESS &&
		    blocks > 1)
			return true;
	return false;
}

bool rewrite_follow(const struct origin *origin, const struct rewritten *rewritten)
{
	CUfunction original = rewrite_original(origin);
	int config = atomic_load(&origin->cache_config);

	if (original && in_clusters(original))
		return false;
	for (size_t i = 0; original && i < WEIR_FORM_COUNT * BUILDS_MAX; i++) {
		CUfunction variant = rewritten->variants[i / BUILDS_MAX][i % BUILDS_MAX].function;
		if (variant && !follow(original, variant, config))
			return false;
	}
	return original != NULL;
}

/* NULL: done. */
static const char *load(struct rewritten *rewritten, const struct origin *origin,
			const struct weir_object *object)
{
	if (real(cuModuleLoadData)(&rewritten->module, at(object, object->image)) != CUDA_SUCCESS) {
		rewritten->module = NULL;
		return "the driver does not load its forms";
	}
	const char *reason = bind_forms(rewritten, object);
	reason = reason ? reason : bind_variables(rewritten, origin, object);
	if (!reason && !rewrite_follow(origin, rewritten))
		reason = "its forms need more shared memory than there is";
	return reason;
}

const struct rewritten *rewrite_load(const struct origin *origin, const char *kernel, unsigned sm,
				     int file, char text[REWRITE_TEXT])
{
	cleanup(freep) struct weir_object *object = read_object(file);
	const char *reason = object ? unfit(object, kernel, sm) : "the answer is malformed";

	if (!reason && !describe(object, text))
		return NULL;
	struct loaded *loaded = reason ? NULL : loaded_new(object);
	if (!reason)
		reason = loaded ? load(&loaded->rewritten, origin, object) : "out of memory";
	if (!reason)
		return &loaded->rewritten;
	snprintf(text, REWRITE_TEXT, "%s", reason);
	if (loaded && loaded->rewritten.module)
		real(cuModuleUnload)(loaded->rewritten.module);
	free(loaded);
	return NULL;
}

void rewrite_unload(const struct rewritten *rewritten, bool module)
{
	struct loaded *loaded, **at_end = &kept;
	uint64_t now = monotonic_now();

	if (!rewritten)
		return;
	if (module)
		real(cuModuleUnload)(rewritten->module);
	loaded = container_of((struct rewritten *)rewritten, struct loaded, rewritten);
	loaded->next = NULL;
	loaded->until = now + KEPT_FOR;
	locked(&lock);
	while (kept && kept->until < now) {
		struct loaded *old = kept;
		kept = kept->next;
		free(old);
	}
	while (*at_end)
		at_end = &(*at_end)->next;
	*at_end = loaded;
}

void rewrite_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	kept = NULL;
}
