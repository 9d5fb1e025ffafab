/* Functions that a program declares and the system provides: vprintf, what a failed assert calls,
 * malloc and free. Their arguments lie in the caller's frame.
 */
#include "simcuda/ptx/execute/builtin.h"

#include "simcuda/ptx/execute/memory.h"

#include <stdio.h>

#define TEXT_MAX 1024 /* bytes of a string, and of a printed line */

/* Argument @k of the call, zero-extended. */
static uint64_t argument(const struct ptx_warp *w, const struct ptx_insn *i, uint32_t lane,
			 uint32_t k)
{
	const struct ptx_argument *a = &i->call->arguments[k];
	uint64_t value = 0;
	const uint8_t *at =
		w->stack + (uint64_t)lane * w->block->stack_bytes + w->lane_locals[lane] + a->at;

	if (a->is_row)
		at = w->registers + w->lane_regs[lane] + (a->at & ~3u) + lane * a->bytes;
	memcpy(&value, at, a->bytes < sizeof(value) ? a->bytes : sizeof(value));
	return value;
}

static void set_result(const struct ptx_warp *w, const struct ptx_insn *i, uint32_t lane,
		       uint64_t value)
{
	const struct ptx_argument *a = &i->call->results[0];
	uint8_t *at =
		w->stack + (uint64_t)lane * w->block->stack_bytes + w->lane_locals[lane] + a->at;

	if (a->is_row)
		at = w->registers + w->lane_regs[lane] + (a->at & ~3u) + lane * a->bytes;
	memcpy(at, &value, a->bytes < sizeof(value) ? a->bytes : sizeof(value));
}

/* A string at a generic address, cut to what fits. False: a fault. */
static bool read_string(struct ptx_warp *w, const struct ptx_insn *i, uint32_t lane,
			uint64_t address, char *out)
{
	size_t n = 0;

	do {
		if (!ptx_read_generic(w, i, lane, address + n, 1, &out[n]))
			return false;
	} while (out[n] && ++n < TEXT_MAX - 1);
	out[n] = '\0';
	return true;
}

/* The state of printf for one thread. */
struct printing {
	struct ptx_warp *warp;
	const struct ptx_insn *insn;
	uint32_t lane;
	uint64_t at; /* of the next value */
	uint32_t values;
	char text[TEXT_MAX];
	size_t n;
};

static void append(struct printing *p, const char *text, size_t len)
{
	size_t room = sizeof(p->text) - 1 - p->n;

	len = len < room ? len : room;
	memcpy(p->text + p->n, text, len);
	p->n += len;
}

/* Values lie behind each other, each aligned to its size. */
static bool next_value(struct printing *p, uint32_t bytes, uint64_t *out)
{
	*out = 0;
	p->at = (p->at + bytes - 1) / bytes * bytes;
	if (!ptx_read_generic(p->warp, p->insn, p->lane, p->at, bytes, out))
		return false;
	p->at += bytes;
	p->values++;
	return true;
}

/* One conversion, @format from % to its letter: checked by print_conversion. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static bool print_value(struct printing *p, char *format, size_t len)
{
	char kind = format[len - 1], text[TEXT_MAX], string[TEXT_MAX];
	bool wide = strpbrk(format, "ljzt") != NULL;
	bool real = strchr("aAeEfFgG", kind) != NULL, pointer = kind == 's' || kind == 'p';
	uint64_t value;
	double number;

	if (!next_value(p, wide || real || pointer ? 8 : 4, &value))
		return false;
	int n;
	if (real) {
		memcpy(&number, &value, sizeof(number));
		n = snprintf(text, sizeof(text), format, number);
	} else if (kind == 's') {
		if (!read_string(p->warp, p->insn, p->lane, value, string))
			return false;
		n = snprintf(text, sizeof(text), format, string);
	} else if (kind == 'p') {
		n = snprintf(text, sizeof(text), format, (void *)(uintptr_t)value);
	} else if (wide) {
		n = snprintf(text, sizeof(text), format, (unsigned long long)value);
	} else {
		n = snprintf(text, sizeof(text), format, (unsigned)value);
	}
	if (n > 0)
		append(p, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
	return true;
}
#pragma GCC diagnostic pop

/* A width that makes sense, and no wide characters. */
static bool is_printable(const char *at, size_t n)
{
	unsigned digits = 0;

	for (size_t k = 1; k < n; k++) {
		digits = at[k] >= '0' && at[k] <= '9' ? digits + 1 : 0;
		if (digits > 3 || (at[k] == 'l' && (at[n] == 'c' || at[n] == 's')))
			return false;
	}
	return n < 16 && at[n] && strchr("diouxXcaAeEfFgGsp", at[n]);
}

/* At a %: true and *@used characters consumed, or a fault. Text that is no conversion is printed
 * unchanged. */
static bool print_conversion(struct printing *p, const char *at, size_t *used)
{
	size_t n = 1 + strspn(at + 1, "-+ #0123456789.");
	char format[20];

	n += strspn(at + n, "lhjzt");
	if (!is_printable(at, n)) {
		*used = at[n] == '%' ? n + 1 : n;
		append(p, at[n] == '%' ? "%" : at, at[n] == '%' ? 1 : n);
		return true;
	}
	memcpy(format, at, n + 1);
	format[n + 1] = '\0';
	*used = n + 1;
	/* Device and host agree on 64-bit integers; h, j, z and t need no translation. */
	return print_value(p, format, n + 1);
}

static bool print_thread(struct ptx_warp *w, const struct ptx_insn *i, uint32_t lane)
{
	struct printing p = {.warp = w, .insn = i, .lane = lane, .at = argument(w, i, lane, 1)};
	char format[TEXT_MAX];

	if (!read_string(w, i, lane, argument(w, i, lane, 0), format))
		return false;
	for (const char *at = format; *at;) {
		size_t used = strcspn(at, "%");
		if (used)
			append(&p, at, used);
		else if (!print_conversion(&p, at, &used))
			return false;
		at += used;
	}
	fwrite(p.text, 1, p.n, stdout);
	set_result(w, i, lane, p.values);
	return true;
}

static enum ptx_flow print(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	for (; mask; mask &= mask - 1)
		if (!print_thread(w, i, (uint32_t)__builtin_ctz(mask)))
			return PTX_FAULT;
	fflush(stdout);
	return PTX_NEXT;
}

/* __assertfail(message, file, line, function, size of a character) */
static enum ptx_flow fail(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	uint32_t lane = (uint32_t)__builtin_ctz(mask);
	char message[TEXT_MAX], file[TEXT_MAX];

	if (!read_string(w, i, lane, argument(w, i, lane, 0), message) ||
	    !read_string(w, i, lane, argument(w, i, lane, 1), file))
		return PTX_FAULT;
	w->block->error.asserted = true;
	return ptx_fault(w, i, "assertion failed: %.120s (%.80s:%u)", message, file,
			 (unsigned)argument(w, i, lane, 2));
}

static enum ptx_flow allocate(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	const struct ptx_heap *heap = w->block->launch->heap;

	for (; mask; mask &= mask - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(mask);
		uint64_t size = argument(w, i, lane, 0);

		set_result(w, i, lane, heap ? (uintptr_t)heap->allocate(heap->data, size) : 0);
	}
	return PTX_NEXT;
}

static enum ptx_flow release(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	const struct ptx_heap *heap = w->block->launch->heap;

	for (; heap && mask; mask &= mask - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(mask);

		heap->release(heap->data, (void *)(uintptr_t)argument(w, i, lane, 0));
	}
	return PTX_NEXT;
}

static const struct {
	const char *name;
	ptx_exec *exec;
	uint32_t n_params, n_results, result_bytes;
} builtins[] = {
	{"vprintf", print, 2, 1, sizeof(uint32_t)},
	{"__assertfail", fail, 5, 0, 0},
	{"malloc", allocate, 1, 1, sizeof(uint64_t)},
	{"free", release, 1, 0, 0},
};

ptx_exec *ptx_builtin_find(const struct ptx_function *f)
{
	for (size_t k = 0; k < sizeof(builtins) / sizeof(builtins[0]); k++)
		if (strcmp(builtins[k].name, f->name) == 0 && builtins[k].n_params == f->n_params &&
		    builtins[k].n_results == f->n_results &&
		    (f->n_results == 0 || f->results[0]->size == builtins[k].result_bytes))
			return builtins[k].exec;
	return NULL;
}
