/* Loads, frees and queries modules: the module functions of ptx.h. */
#include "simcuda/ptx/parse/parse.h"

#include "simcuda/ptx/execute/warp.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define TEXT_MAX (512u << 20)

ptx_address_check *_Atomic ptx_check_address;

void ptx_set_address_check(ptx_address_check *check)
{
	ptx_check_address = check;
}

/* Names of special registers that are not rows of their own. */
static const struct {
	const char *name;
	uint32_t row, bytes;
	uint64_t clock;
} more_specials[] = {
	{"%clock", PTX_NO_ROW, 4, PTX_CLOCK_LOW},
	{"%clock_hi", PTX_NO_ROW, 4, PTX_CLOCK_HIGH},
	{"%clock64", PTX_NO_ROW, 8, PTX_CLOCK},
	{"%globaltimer", PTX_NO_ROW, 8, PTX_TIMER},
	{"%globaltimer_lo", PTX_NO_ROW, 4, PTX_TIMER_LOW},
	{"%globaltimer_hi", PTX_NO_ROW, 4, PTX_TIMER_HIGH},
	{"%clusterid.x", PTX_SPECIAL_REF(ctaid_x), 4},
	{"%clusterid.y", PTX_SPECIAL_REF(ctaid_y), 4},
	{"%clusterid.z", PTX_SPECIAL_REF(ctaid_z), 4},
	{"%nclusterid.x", PTX_SPECIAL_REF(nctaid_x), 4},
	{"%nclusterid.y", PTX_SPECIAL_REF(nctaid_y), 4},
	{"%nclusterid.z", PTX_SPECIAL_REF(nctaid_z), 4},
	{"%cluster_nctaid.y", PTX_SPECIAL_REF(one), 4},
	{"%cluster_nctaid.z", PTX_SPECIAL_REF(one), 4},
	{"%cluster_nctarank", PTX_SPECIAL_REF(one), 4},
	{"%cluster_ctaid.x", PTX_SPECIAL_REF(zero), 4},
	{"%cluster_ctaid.y", PTX_SPECIAL_REF(zero), 4},
	{"%cluster_ctaid.z", PTX_SPECIAL_REF(zero), 4},
	{"%cluster_ctarank", PTX_SPECIAL_REF(zero), 4},
#define E(n)                                           \
	{                                              \
		"%envreg" #n, PTX_SPECIAL_REF(zero), 4 \
	}
	E(3),
	E(4),
	E(5),
	E(6),
	E(7),
	E(8),
	E(9),
	E(10),
	E(11),
	E(12),
	E(13),
	E(14),
	E(15),
	E(16),
	E(17),
	E(18),
	E(19),
	E(20),
	E(21),
	E(22),
	E(23),
	E(24),
	E(25),
	E(26),
	E(27),
	E(28),
	E(29),
	E(30),
	E(31),
#undef E
};

static const struct {
	const char *name;
	uint32_t row, bytes;
} special_rows[] = {
#define X(id, text, size) {text, PTX_SPECIAL_REF(id), size},
	PTX_SPECIAL_ROWS(X)
#undef X
};

static int declare_name(struct ptx_parser *p, const char *name, uint32_t row, uint32_t bytes,
			uint64_t clock)
{
	struct ptx_token token = {.kind = PTX_TOKEN_WORD, .text = name, .len = strlen(name)};

	if (!*name)
		return 0;
	struct ptx_symbol *symbol = ptx_declare(p, p->module_scope, &token, PTX_SYMBOL_SPECIAL);
	if (!symbol)
		return p->result;
	symbol->row = row;
	symbol->bytes = bytes;
	symbol->count = clock;
	return 0;
}

/* %tid.x and its like are %tid.r and its like as well. */
static int declare_special(struct ptx_parser *p, const char *name, uint32_t row, uint32_t bytes,
			   uint64_t clock)
{
	static const char parts[] = "xyzw", others[] = "rgba";
	const char *dot = strchr(name, '.'), *part = dot && dot[1] ? strchr(parts, dot[1]) : NULL;
	size_t len = strlen(name);
	char *other;

	if (part) {
		other = ptx_arena_string(&p->names, name, len);
		if (!other)
			return ptx_no_memory(p);
		other[len - 1] = others[part - parts];
		declare_name(p, other, row, bytes, clock);
	}
	return declare_name(p, name, row, bytes, clock);
}

static int declare_specials(struct ptx_parser *p)
{
	for (size_t k = 0; k < sizeof(special_rows) / sizeof(special_rows[0]); k++)
		declare_special(p, special_rows[k].name, special_rows[k].row, special_rows[k].bytes,
				0);
	for (size_t k = 0; k < sizeof(more_specials) / sizeof(more_specials[0]); k++)
		declare_special(p, more_specials[k].name, more_specials[k].row,
				more_specials[k].bytes, more_specials[k].clock);
	return p->result;
}

static int parser_init(struct ptx_parser *p, struct ptx_module *module, const char *text,
		       size_t len, struct ptx_error *error)
{
	*p = (struct ptx_parser){
		.lexer = {.at = text, .end = text + len, .line = 1},
		.module = module,
		.error = error,
	};
	p->last_initial = &p->initials;
	p->module_scope = ptx_scope_push(p);
	p->function_scopes = NULL;
	return p->module_scope ? declare_specials(p) : p->result;
}

static void parser_deinit(struct ptx_parser *p)
{
	struct ptx_function *f;

	ptx_scopes_free(p->function_scopes);
	ptx_scopes_free(p->module_scope);
	for (f = p->module->functions; f; f = f->hh.next) {
		HASH_CLEAR(hh, f->constant_table);
		f->uses = NULL;
	}
	ptx_arena_deinit(&p->local);
	ptx_arena_deinit(&p->names);
}

int ptx_module_load(struct ptx_module **out, const char *text, size_t len, struct ptx_error *error)
{
	struct ptx_error unused = {0};
	struct ptx_parser parser;
	struct ptx_module *module = calloc(1, sizeof(*module));

	error = error ? error : &unused;
	*error = (struct ptx_error){0};
	if (!module)
		return -ENOMEM;
	module->last_kernel = &module->kernels;
	len = strnlen(text, len);
	int r = parser_init(&parser, module, text, len, error);
	if (!r && len > TEXT_MAX)
		r = ptx_fail(&parser, "the text has over %u bytes", TEXT_MAX);
	if (!r)
		r = ptx_parse_module(&parser);
	if (!r)
		r = ptx_layout(&parser);
	parser_deinit(&parser);
	if (r) {
		ptx_module_free(module);
		return r;
	}
	*out = module;
	return 0;
}

void ptx_module_free(struct ptx_module *module)
{
	struct ptx_function *f;

	if (!module)
		return;
	for (f = module->functions; f; f = f->hh.next) {
		free(f->constants);
	}
	HASH_CLEAR(hh, module->functions);
	HASH_CLEAR(hh, module->globals);
	if (module->memory)
		munmap(module->memory, module->memory_bytes);
	free(module->code);
	ptx_arena_deinit(&module->arena);
	free(module);
}

static const struct ptx_function *function_of(const struct ptx_kernel *kernel)
{
	return (const struct ptx_function *)kernel;
}

struct ptx_kernel *ptx_module_kernel(struct ptx_module *module, const char *name)
{
	struct ptx_function *f;

	HASH_FIND_STR(module->functions, name, f);
	return f && f->is_kernel && f->defined ? (struct ptx_kernel *)f : NULL;
}

struct ptx_kernel *ptx_module_kernel_at(struct ptx_module *module, size_t index)
{
	struct ptx_function *f = module->kernels;

	while (f && index--)
		f = f->next_kernel;
	return (struct ptx_kernel *)f;
}

bool ptx_module_global(struct ptx_module *module, const char *name, void **address, size_t *size)
{
	struct ptx_variable *v;

	HASH_FIND_STR(module->globals, name, v);
	if (!v)
		return false;
	*address = module->memory + v->offset;
	*size = v->size;
	return true;
}

void ptx_module_memory(struct ptx_module *module, void **address, size_t *size)
{
	*address = module->memory;
	*size = module->memory_bytes;
}

int ptx_kernel_check(const struct ptx_kernel *kernel, struct ptx_error *error)
{
	const struct ptx_function *f = function_of(kernel);

	if (!f->unusable.message[0])
		return 0;
	if (error)
		*error = f->unusable;
	return -ENOTSUP;
}

const char *ptx_kernel_name(const struct ptx_kernel *kernel)
{
	return function_of(kernel)->name;
}

size_t ptx_kernel_param_count(const struct ptx_kernel *kernel)
{
	return function_of(kernel)->n_params;
}

struct ptx_param ptx_kernel_param(const struct ptx_kernel *kernel, size_t index)
{
	const struct ptx_variable *v = function_of(kernel)->params[index];

	return (struct ptx_param){(uint32_t)v->offset, (uint32_t)v->size};
}

size_t ptx_kernel_param_bytes(const struct ptx_kernel *kernel)
{
	return function_of(kernel)->param_bytes;
}

uint32_t ptx_kernel_static_shared(const struct ptx_kernel *kernel)
{
	return function_of(kernel)->static_shared;
}

uint32_t ptx_kernel_local_bytes(const struct ptx_kernel *kernel)
{
	return function_of(kernel)->total_frame_bytes;
}

uint32_t ptx_kernel_registers(const struct ptx_kernel *kernel)
{
	return function_of(kernel)->registers;
}

uint32_t ptx_kernel_max_threads(const struct ptx_kernel *kernel)
{
	return function_of(kernel)->max_threads;
}
