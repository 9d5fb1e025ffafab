/* Estimates how many registers a real compiler would need. PTX names many registers, few of them
 * alive at once. A register is alive from its first to its last mention, and through each loop at
 * whose head it is alive. */
#include "simcuda/ptx/load/pressure.h"

#include <stdlib.h>

#define WORK_MAX (1u << 26) /* loops times registers that are looked at */
#define RESERVED 6          /* addresses and the like, of the machine's own */
#define LEAST    16
#define MOST     255

struct life {
	uint32_t first, last; /* pcs; last < first: never mentioned */
	uint32_t units;
};

/* Rows lie at multiples of 64 bytes; predicates count for nothing. */
static struct life *find_lives(const struct ptx_module *module, const struct ptx_function *f,
			       uint32_t n)
{
	struct life *lives = calloc(n, sizeof(*lives));

	for (uint32_t k = 0; lives && k < n; k++)
		lives[k].first = UINT32_MAX;
	for (uint32_t pc = f->entry; lives && pc < f->end; pc++) {
		const struct ptx_insn *i = &module->code[pc];
		for (uint32_t k = 0; k < PTX_OPERANDS; k++) {
			if (i->op[k] == PTX_NO_ROW || (i->op[k] & 3) != PTX_REGISTERS ||
			    i->op[k] % 64)
				continue;
			struct life *life = &lives[i->op[k] / 64];
			life->first = pc < life->first ? pc : life->first;
			life->last = pc;
		}
	}
	return lives;
}

/* A row ends where the next one begins. */
static void find_units(struct life *lives, uint32_t n)
{
	uint32_t next = n;

	for (uint32_t k = n; k > 0; k--) {
		struct life *life = &lives[k - 1];
		if (life->first > life->last)
			continue;
		life->units = next - (k - 1) >= 4 ? 2 : 1;
		next = k - 1;
	}
}

static void extend_through_loops(const struct ptx_module *module, const struct ptx_function *f,
				 struct life *lives, uint32_t n)
{
	uint64_t work = 0;

	for (uint32_t pc = f->entry; pc < f->end && work < WORK_MAX; pc++) {
		const struct ptx_insn *i = &module->code[pc];
		if (i->exec != ptx_exec_bra || i->imm > pc)
			continue;
		uint32_t head = (uint32_t)i->imm;
		work += n;
		for (uint32_t k = 0; k < n; k++)
			if (lives[k].first < head && lives[k].last >= head && lives[k].last < pc)
				lives[k].last = pc;
	}
}

static uint32_t peak(const struct ptx_function *f, const struct life *lives, uint32_t n)
{
	uint32_t length = f->end - f->entry + 1;
	int32_t *change = calloc(length + 1, sizeof(*change)), now = 0, most = 0;

	for (uint32_t k = 0; change && k < n; k++) {
		if (lives[k].first > lives[k].last)
			continue;
		change[lives[k].first - f->entry] += (int32_t)lives[k].units;
		change[lives[k].last - f->entry + 1] -= (int32_t)lives[k].units;
	}
	for (uint32_t k = 0; change && k < length; k++) {
		now += change[k];
		most = now > most ? now : most;
	}
	free(change);
	return (uint32_t)most;
}

uint32_t ptx_pressure(const struct ptx_module *module, const struct ptx_function *f)
{
	uint32_t n = f->register_bytes / 64 + 1, registers = 0;
	struct life *lives = find_lives(module, f, n);

	if (lives) {
		find_units(lives, n);
		extend_through_loops(module, f, lives, n);
		registers = peak(f, lives, n);
	}
	free(lives);
	registers += RESERVED;
	return registers < LEAST ? LEAST : registers > MOST ? MOST : registers;
}
