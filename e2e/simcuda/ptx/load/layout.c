/* Runs when the whole text is known. Gives variables their addresses, puts them into the code, and
 * adds up what each kernel and its callees need.
 *
 * Shared variables that a kernel uses are laid out as ptxas does it: those of the kernel, then
 * those of the module, both in the order of declaration. One that a device function uses has one
 * offset for all kernels, before the kernels' own.
 */
#include "simcuda/ptx/parse/parse.h"

#include "simcuda/ptx/execute/builtin.h"
#include "simcuda/ptx/load/pressure.h"
#include "simcuda/ptx/execute/warp.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define WALK_MAX 1000 /* nested calls that are followed */

static uint64_t align_up(uint64_t value, uint64_t align)
{
	return (value + align - 1) / align * align;
}

/* Zero pages come from the system as they are touched. */
static int allocate_variables(struct ptx_parser *p)
{
	struct ptx_module *module = p->module;

	if (!module->memory_bytes)
		return 0;
	module->memory_bytes = align_up(module->memory_bytes, 4096);
	void *memory = mmap(NULL, module->memory_bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return ptx_no_memory(p);
	module->memory = memory;
	return 0;
}

static void place_shared(struct ptx_variable *v, uint64_t *end)
{
	v->offset = align_up(*end, v->align);
	*end = v->offset + v->size;
	v->placed = true;
}

static bool precedes(const struct ptx_variable *a, const struct ptx_variable *b)
{
	return a->of_module == b->of_module ? a->number < b->number : b->of_module;
}

/* The kernel's next shared variable without an offset; NULL: there is none. */
static struct ptx_variable *next_shared(const struct ptx_function *kernel)
{
	struct ptx_variable *next = NULL;

	for (const struct ptx_use *use = kernel->uses; use; use = use->next) {
		struct ptx_variable *v = use->variable;

		if (v->space == PTX_SPACE_SHARED && !v->dynamic && !v->placed &&
		    (!next || precedes(v, next)))
			next = v;
	}
	return next;
}

/* Shared variables that device functions use. */
static int place_function_shared(struct ptx_parser *p)
{
	struct ptx_function *f;
	uint64_t end = 0;

	for (f = p->module->functions; f; f = f->hh.next) {
		for (struct ptx_use *use = f->uses; use && !f->is_kernel; use = use->next) {
			struct ptx_variable *v = use->variable;
			if (v->space != PTX_SPACE_SHARED || v->dynamic)
				continue;
			f->shares = true;
			v->in_function = true;
			if (!v->placed)
				place_shared(v, &end);
		}
	}
	p->module->function_shared = (uint32_t)align_up(end, 16);
	return 0;
}

static uint64_t address_of(const struct ptx_module *module, const struct ptx_variable *v)
{
	bool in_memory = v->space == PTX_SPACE_GLOBAL || v->space == PTX_SPACE_CONST;

	return v->offset + (in_memory ? (uintptr_t)module->memory : 0);
}

static int fill_constants(struct ptx_parser *p, struct ptx_function *f)
{
	struct ptx_constant *c;

	if (!f->constant_bytes)
		return 0;
	f->constants = aligned_alloc(64, align_up(f->constant_bytes, 64));
	if (!f->constants)
		return ptx_no_memory(p);
	memset(f->constants, 0, align_up(f->constant_bytes, 64));
	for (c = f->constant_table; c; c = c->hh.next) {
		uint64_t value = c->key.bits;
		if (c->key.variable)
			value += address_of(p->module, c->key.variable);
		if (c->key.bytes == 0)
			memcpy(f->constants + c->offset, &value, sizeof(uint32_t));
		for (uint32_t lane = 0; lane < PTX_LANES; lane++)
			memcpy(f->constants + c->offset + lane * c->key.bytes, &value,
			       c->key.bytes);
	}
	return 0;
}

static int resolve(struct ptx_parser *p, struct ptx_function *f)
{
	for (struct ptx_use *use = f->uses; use; use = use->next)
		if (use->insn != SIZE_MAX)
			p->module->code[use->insn].imm +=
				(int64_t)address_of(p->module, use->variable);
	return fill_constants(p, f);
}

/* Adds up what @f and its callees need; in functions that call each other, or too many deep,
 * `deep`. */
static void walk(struct ptx_function *f, unsigned depth)
{
	uint32_t registers = 0, frame = 0, frames = 0;

	f->visit = 1;
	f->registers = f->defined ? ptx_pressure(f->module, f) : 0;
	f->unusable = f->error;
	f->deep = f->calls_by_address || depth > WALK_MAX;
	if (!f->defined)
		f->builtin = ptx_builtin_find(f);
	if (!f->defined && !f->builtin && !f->unusable.message[0]) {
		f->unusable.line = f->line;
		snprintf(f->unusable.message, sizeof(f->unusable.message),
			 "function %.200s is not defined", f->name);
	}
	for (struct ptx_callee *c = f->callees; c; c = c->next) {
		struct ptx_function *callee = c->function;
		if (callee->visit == 0 && depth <= WALK_MAX)
			walk(callee, depth + 1);
		f->deep |= callee->visit != 2 || callee->deep;
		f->shares |= callee->shares;
		f->registers = callee->registers > f->registers ? callee->registers : f->registers;
		if (!f->unusable.message[0])
			f->unusable = callee->unusable;
		if (callee->dynamic_align > f->dynamic_align)
			f->dynamic_align = callee->dynamic_align;
		registers = callee->total_register_bytes > registers ? callee->total_register_bytes
								     : registers;
		frame = callee->total_frame_bytes > frame ? callee->total_frame_bytes : frame;
		frames = callee->frames + 1 > frames ? callee->frames + 1 : frames;
	}
	f->total_register_bytes = f->register_bytes + registers;
	f->total_frame_bytes = f->frame_bytes + frame;
	f->frames = frames;
	f->visit = 2;
}

static void find_dynamic(struct ptx_function *f)
{
	for (struct ptx_use *use = f->uses; use; use = use->next)
		if (use->variable->dynamic && use->variable->align > f->dynamic_align)
			f->dynamic_align = (uint32_t)use->variable->align;
}

/* If the depth of calls is unknown, reserves room for this many of the largest frame. */
static void make_room(struct ptx_module *module, struct ptx_function *f)
{
	if (!f->deep)
		return;
	f->shares = true;
	f->frames = PTX_FRAMES_MAX;
	f->total_register_bytes = f->register_bytes + PTX_FRAMES_MAX * module->largest_registers;
	f->total_frame_bytes = f->frame_bytes + PTX_FRAMES_MAX * module->largest_frame;
}

static int lay_out_kernel(struct ptx_parser *p, struct ptx_function *f)
{
	struct ptx_variable *v;
	struct ptx_use *use;
	uint64_t end;

	for (use = f->uses; use; use = use->next)
		f->shares |= use->variable->in_function;
	make_room(p->module, f);
	end = f->shares ? p->module->function_shared : 0;
	while ((v = next_shared(f)))
		place_shared(v, &end);
	int r = resolve(p, f);
	for (use = f->uses; use; use = use->next)
		use->variable->placed = use->variable->in_function;
	if (end > PTX_SHARED_BYTES_MAX && !f->unusable.message[0]) {
		f->unusable.line = f->line;
		snprintf(f->unusable.message, sizeof(f->unusable.message),
			 "%.150s needs %llu bytes of shared memory", f->name,
			 (unsigned long long)end);
		end = 0;
	}
	f->static_shared = (uint32_t)end;
	if (f->dynamic_align < 16)
		f->dynamic_align = 16;
	f->dynamic_offset = (uint32_t)align_up(end, f->dynamic_align);
	return r;
}

int ptx_layout(struct ptx_parser *p)
{
	struct ptx_module *module = p->module;
	struct ptx_function *f;
	int r = allocate_variables(p);

	if (r || (r = place_function_shared(p)))
		return r;
	for (f = module->functions; f; f = f->hh.next) {
		find_dynamic(f);
		if (f->is_kernel)
			continue;
		if (f->register_bytes > module->largest_registers)
			module->largest_registers = f->register_bytes;
		if (f->frame_bytes > module->largest_frame)
			module->largest_frame = f->frame_bytes;
		if ((r = resolve(p, f)))
			return r;
	}
	for (f = module->functions; f; f = f->hh.next) {
		if (f->visit == 0)
			walk(f, 0);
	}
	for (f = module->kernels; f; f = f->next_kernel)
		if ((r = lay_out_kernel(p, f)))
			return r;
	return ptx_apply_initials(p);
}
