/* The usual backward data-flow equations. Sets are kept at block boundaries only; each visit walks
 * the block's instructions again. The number of rounds is about the loop depth; a graph that needs
 * more than ROUND_MAX is refused. */
#include "analysis/live.h"

#include <string.h>

#define ROUND_MAX    64u
#define SPARE_BYTES  (1u << 20) /* limit of the sets' size, plus ... */
#define BYTES_A_BYTE 32u        /* ... this for each byte of the function's text */

static bool has_bit(const uint64_t *set, unsigned bit)
{
	return set[bit / 64] >> bit % 64 & 1;
}

static void set_bit(uint64_t *set, unsigned bit)
{
	set[bit / 64] |= (uint64_t)1 << bit % 64;
}

static void clear_bit(uint64_t *set, unsigned bit)
{
	set[bit / 64] &= ~((uint64_t)1 << bit % 64);
}

/* First pass: registers that some block reads before it certainly writes them. */
struct finder {
	struct live *live;
	unsigned *written_in; /* by register: number of the last block that wrote it, plus 1 */
	unsigned block;
	bool writes; /* this visit looks at writes */
};

static void find_global(void *data, struct register_use use)
{
	struct finder *finder = data;
	unsigned id = use.reg->id;

	if (finder->writes) {
		if (use.kills)
			finder->written_in[id] = finder->block;
		return;
	}
	if (use.read && finder->written_in[id] != finder->block &&
	    finder->live->index[id] == LIVE_LOCAL) {
		finder->live->regs[finder->live->count] = use.reg;
		finder->live->index[id] = finder->live->count++;
	}
}

static void find_globals(struct live *live, const struct cfg *cfg)
{
	const struct function *f = live->function;
	struct finder finder = {.live = live};

	live->index = arena_array(f->arena, f->reg_count, sizeof(*live->index));
	live->regs = arena_array(f->arena, f->reg_count, sizeof(struct reg *));
	finder.written_in = arena_array(f->arena, f->reg_count, sizeof(unsigned));
	memset(live->index, 0xff, f->reg_count * sizeof(*live->index));
	for (unsigned k = 0; k < cfg->count; k++) {
		finder.block = k + 1;
		for (const struct instruction *i = cfg->order[k]->first; i; i = i->next) {
			finder.writes = false;
			instruction_registers(f, i, find_global, &finder);
			finder.writes = true;
			instruction_registers(f, i, find_global, &finder);
		}
	}
	live->words = (live->count + 63) / 64;
}

/* Steps back over an instruction: removes what it kills, adds what it reads. */
struct stepper {
	const struct live *live;
	uint64_t *set;
	bool kills; /* this visit looks at writes */
};

static void step_visit(void *data, struct register_use use)
{
	struct stepper *s = data;
	unsigned bit = s->live->index[use.reg->id];

	if (bit == LIVE_LOCAL)
		return;
	if (s->kills && use.kills)
		clear_bit(s->set, bit);
	if (!s->kills && use.read)
		set_bit(s->set, bit);
}

static void step_back(struct stepper *s, const struct instruction *i)
{
	s->kills = true;
	instruction_registers(s->live->function, i, step_visit, s);
	s->kills = false;
	instruction_registers(s->live->function, i, step_visit, s);
}

/* Computes live_out from the successors and live_in from live_out. True: live_in grew. */
static bool update(const struct live *live, struct block *x, uint64_t *out, uint64_t *in,
		   uint64_t *set)
{
	struct stepper s = {.live = live, .set = set};

	for (unsigned k = 0; k < x->succ_count; k++)
		for (unsigned w = 0; w < live->words; w++)
			out[w] |= x->succs[k]->live_in[w];
	memcpy(set, out, live->words * sizeof(*set));
	for (const struct instruction *i = x->last; i; i = i->prev)
		step_back(&s, i);
	if (!memcmp(set, in, live->words * sizeof(*set)))
		return false;
	memcpy(in, set, live->words * sizeof(*set));
	return true;
}

void live_build(struct function *function, const struct cfg *cfg, struct live *live)
{
	uint64_t *sets, *set;
	bool changed = true;

	*live = (struct live){.function = function};
	find_globals(live, cfg);
	if ((uint64_t)live->words * 16 * cfg->count >
	    SPARE_BYTES + (uint64_t)function->body.len * BYTES_A_BYTE)
		cfg_too_complex(function);
	sets = arena_array(function->arena, (size_t)live->words * cfg->count, 16);
	set = arena_array(function->arena, live->words, sizeof(*set));
	for (unsigned k = 0; k < cfg->count; k++) {
		cfg->order[k]->live_in = sets + (size_t)live->words * 2 * k;
		cfg->order[k]->live_out = sets + (size_t)live->words * (2 * k + 1);
	}
	for (unsigned round = 0; changed; round++) {
		if (round == ROUND_MAX)
			cfg_too_complex(function);
		changed = false;
		for (unsigned k = cfg->count; k-- > 0;)
			changed |= update(live, cfg->order[k],
					  sets + (size_t)live->words * (2 * k + 1),
					  sets + (size_t)live->words * 2 * k, set);
	}
}

bool live_at_start(const struct live *live, const struct block *block, const struct reg *reg)
{
	unsigned bit = reg->id < live->function->reg_count ? live->index[reg->id] : LIVE_LOCAL;

	return bit != LIVE_LOCAL && has_bit(block->live_in, bit);
}
