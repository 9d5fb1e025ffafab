// clang-format off
/* Lets only so many lanes at a time (weir_persistent.calls, prints) call the driver's functions, and
 * one of a warp. Inside these there is no safe point, thousands of lanes that are in one wait for
 * each other, and a warp's lanes are served one after the other. So a kernel could not leave before
 * all of them have returned. In front of each lane's call all can leave. Only few blocks at a time
 * allocate (allocations.h).
 *
 *		done = 0
 *	try:	a safe point, because this is the head of a loop
 *		left = those of the lanes that came together that are not done; none is left? behind
 *		the first of them: has the block not looked for so long? look
 *		calls < most?  calls += 1; it was too many?  calls -= 1
 *		nobody may enter?  wait
 *		the one that may: store the parameters; call; load the result; calls -= 1; done = 1
 *		try
 *	wait:	nanosleep; try
 *	behind:
 *
 * The functions work on the words of one heap or buffer, and many reads of one word keep the memory
 * busy (FORMS.md). So the lanes that wait look about once in 40 ns, those of the whole GPU
 * together. Blocks take turns by time, which their lanes find in shared memory.
 *
 * `calls` is a word of the module, for all launches of the kernel: one for the heap, and one for what
 * is printed. It is 0 when nobody calls: lanes leave at `try`, before they enter, and those that
 * entered return, because the functions wait for nobody outside of them. The other lanes wait for
 * the one that has entered, and it for none of them. */
// clang-format on
#include "passes/callee.h"
#include "passes/hidden.h"
#include "passes/save/allocations.h"

#include <string.h>

#define SLEEP_NS   1000u /* then a look at shared memory */
#define TURN_SHIFT 6u    /* a block looks each 64 cycles times the number of blocks */
#define CALLS_MAX  32u   /* of a kernel: each takes ptxas time, and more are there for debugging */

/* A call, from its first parameter to its last result: PTX wants these without a branch between. */
struct sequence {
	struct instruction *first, *last;
};

/* What functions work on, with the word that counts who is inside, and how many may be. */
enum service { HEAP, OUTPUT, SERVICES };
static const struct {
	const char *word;
	unsigned most; /* member of the hidden parameter */
} services[SERVICES] = {
	[HEAP] = {"calls", HIDDEN(calls)},
	[OUTPUT] = {"prints", HIDDEN(prints)},
};

/* What a kernel counts with. NULL: it has not counted yet. @turn begins with any value. */
struct counted {
	struct variable *inside[SERVICES]; /* of the module: lanes that are in its functions */
	struct variable *turn; /* of the block's shared memory: %clock when it last looked */
	struct allocations allocations;
};

/* Whether @operand is @variable, or names it inside. */
static bool names(const struct operand *operand, const struct variable *variable)
{
	bool found = operand->kind == OPERAND_VARIABLE && operand->variable == variable;

	for (size_t k = 0; k < operand_items(operand) && !found; k++)
		found = names(&operand->items[k], variable);
	return found;
}

static bool passes_to(const struct instruction *i, const struct operand *list)
{
	for (size_t k = 0; k < operand_items(list); k++)
		for (size_t o = 0; o < i->operand_count; o++)
			if (list->items[k].kind == OPERAND_VARIABLE &&
			    names(&i->operands[o], list->items[k].variable))
				return true;
	return false;
}

/* Whether @i stores a parameter of @call or loads its result. */
static bool belongs_to(const struct instruction *i, const struct instruction *call)
{
	for (size_t k = 0; k < call->operand_count; k++)
		if (call->operands[k].kind == OPERAND_LIST && passes_to(i, &call->operands[k]))
			return true;
	return false;
}

/* Lanes that have entered would wait for others there, or it belongs to another call. */
static bool is_in_the_way(const struct instruction *i, const struct instruction *call)
{
	enum opcode_class op_class = i->mnemonic->op_class;

	if (i == call || op_class == OP_PLAIN || op_class == OP_DIRECTIVE)
		return false;
	return op_class != OP_MEMORY ||
	       (mnemonic_has(i->mnemonic, "param") && !belongs_to(i, call));
}

/* False: the call has to stay as it is. */
static bool find_sequence(struct sequence *s, struct instruction *call)
{
	*s = (struct sequence){call, call};
	for (struct instruction *i = call->prev; i && i->mnemonic->op_class != OP_CALL; i = i->prev)
		if (belongs_to(i, call))
			s->first = i;
	for (struct instruction *i = call->next; i && i->mnemonic->op_class != OP_CALL; i = i->next)
		if (belongs_to(i, call))
			s->last = i;
	for (const struct instruction *i = s->first; i != s->last->next; i = i->next)
		if (is_in_the_way(i, call))
			return false;
	return !call->guard;
}

static enum service service_of(const struct instruction *call)
{
	return name_is(callee_of(call)->name, "vprintf") ? OUTPUT : HEAP;
}

static bool allocates(const struct instruction *call)
{
	return name_is(callee_of(call)->name, "malloc");
}

/* The code around a call. */
struct frame {
	bool allocates;
	struct variable *inside; /* of the call's service */
	unsigned most;
	struct reg *done; /* the lane has called */
	struct block *try, *wait, *next, *behind;
};

/* Whether it is the turn of the block, in @due of lane @one. */
static void write_turn(struct cursor *at, struct variable *turn, struct reg *one, struct reg *due)
{
	edit_code(at,
		  "{ .reg .b32 %last, %now, %since, %apart;"
		  "  mov.u32 %apart, %nctaid.x; shl.b32 %apart, %apart, %3; mov.u32 %now, %clock;"
		  "  ld.volatile.shared.u32 %last, [%2]; sub.u32 %since, %now, %last;"
		  "  setp.ge.and.u32 %1, %since, %apart, %0; mov.u32 %since, %last;"
		  "  @%1 atom.shared.cas.b32 %since, [%2], %last, %now;"
		  "  setp.eq.and.u32 %1, %since, %last, %1; }",
		  op_reg(one), op_reg(due), op_variable(turn), op_int(TURN_SHIFT));
}

/* A block whose lane has entered need not wait for its next turn: few others wait. */
static void write_turn_back(struct cursor *at, struct variable *turn, struct reg *in)
{
	edit_code(
		at,
		"{ .reg .b32 %last, %apart; mov.u32 %apart, %nctaid.x; shl.b32 %apart, %apart, %2;"
		"  mov.u32 %last, %clock; sub.u32 %last, %last, %apart;"
		"  @%0 st.volatile.shared.u32 [%1], %last; }",
		op_reg(in), op_variable(turn), op_int(TURN_SHIFT));
}

/* The lanes that came together, those of them that are not done, the first of these, and whether it
 * looks now. */
struct lanes {
	struct reg *here, *left, *one, *due;
};

static void write_lanes(struct cursor *at, const struct counted *counted, const struct frame *frame,
			const struct lanes *lanes)
{
	edit_code(at,
		  "{ .reg .b32 %before; activemask.b32 %0; setp.eq.u32 %2, %3, 0;"
		  "  vote.sync.ballot.b32 %1, %2, %0; mov.u32 %before, %lanemask_lt;"
		  "  and.b32 %before, %before, %1; setp.eq.and.u32 %2, %before, 0, %2; }",
		  op_reg(lanes->here), op_reg(lanes->left), op_reg(lanes->one),
		  op_reg(frame->done));
	write_turn(at, counted->turn, lanes->one, lanes->due);
}

/* Looks if it is due, and enters if it may: @in. */
static void write_look(struct cursor *at, struct rewrite *rewrite, const struct counted *counted,
		       const struct frame *frame, struct reg *due, struct reg *in)
{
	struct reg *now = edit_named_register(rewrite->function, TYPE_b32, "now");

	edit_code(at,
		  "{ .reg .b64 %calls; mov.u64 %calls, %0; mov.u32 %1, 0;"
		  "  @%2 ld.volatile.global.u32 %1, [%calls]; }",
		  op_variable(frame->inside), op_reg(now), op_reg(due));
	if (frame->allocates)
		allocations_admit(at, rewrite, &counted->allocations, now, due);
	edit_code(at,
		  "{ .reg .pred %out; .reg .b32 %n, %most; .reg .b64 %calls;"
		  "  mov.u64 %calls, %0; sub.u32 %most, %1, 1; mov.u32 %n, 1;"
		  "  setp.le.and.u32 %3, %4, %most, %2;"
		  "  @%3 atom.global.add.u32 %4, [%calls], %n; mov.u32 %n, -1;"
		  "  setp.gt.and.u32 %out, %4, %most, %3; setp.le.and.u32 %3, %4, %most, %3;"
		  "  @%out red.global.add.u32 [%calls], %n; }",
		  op_variable(frame->inside), hidden16(at, rewrite, frame->most), op_reg(due),
		  op_reg(in), op_reg(now));
	write_turn_back(at, counted->turn, in);
}

/* Behind it the lane that has entered is alone. The branches are last: lanes that came together
 * decide together. */
static void write_enter(struct cursor *at, struct rewrite *rewrite, const struct counted *counted,
			const struct frame *frame)
{
	struct function *f = rewrite->function;
	struct lanes lanes = {
		edit_named_register(f, TYPE_b32, "here"), edit_named_register(f, TYPE_b32, "left"),
		edit_named_register(f, TYPE_pred, "one"), edit_named_register(f, TYPE_pred, "due")};
	struct reg *in = edit_named_register(f, TYPE_pred, "in");

	write_lanes(at, counted, frame, &lanes);
	write_look(at, rewrite, counted, frame, lanes.due, in);
	edit_code(at,
		  "{ .reg .pred %any, %none; vote.sync.any.pred %any, %0, %1;"
		  "  setp.eq.u32 %none, %2, 0; @%none bra %3; @!%any bra %4; @!%0 bra %5; }",
		  op_reg(in), op_reg(lanes.here), op_reg(lanes.left), op_block(frame->behind),
		  op_block(frame->wait), op_block(frame->next));
}

static void count(struct rewrite *rewrite, const struct counted *counted, const struct sequence *s,
		  struct instruction *call)
{
	struct function *f = rewrite->function;
	enum service service = service_of(call);
	struct frame frame = {
		.allocates = allocates(call),
		.inside = counted->inside[service],
		.most = services[service].most,
		.done = edit_named_register(f, TYPE_b32, "done"),
		.try = edit_new_block(f),
		.wait = edit_block(f, f->last, "wait"),
		.next = edit_new_block(f),
		.behind = edit_new_block(f),
	};
	struct cursor at = cursor_before(f, s->first);

	edit_code(&at, "mov.u32 %0, 0;", op_reg(frame.done));
	cursor_place(&at, frame.try);
	write_enter(&at, rewrite, counted, &frame);
	at = cursor_after(f, s->last);
	edit_code(&at,
		  "{ .reg .b32 %less; .reg .b64 %calls; mov.u64 %calls, %0; mov.u32 %less, -1;"
		  "  red.global.add.u32 [%calls], %less; mov.u32 %1, 1; }",
		  op_variable(frame.inside), op_reg(frame.done));
	cursor_place(&at, frame.next);
	edit_code(&at, "bra %0;", op_block(frame.try));
	cursor_place(&at, frame.behind);
	at = cursor_end(f, frame.wait);
	edit_code(&at, "nanosleep.u32 %0; bra %1;", op_int(SLEEP_NS), op_block(frame.try));
}

static void init_counted(struct counted *counted, struct function *f,
			 const struct instruction *call)
{
	enum service service = service_of(call);

	if (!counted->turn)
		counted->turn = edit_variable(f, SPACE_SHARED, "turn", 4, 4);
	if (!counted->inside[service])
		counted->inside[service] =
			edit_variable(f, SPACE_GLOBAL, services[service].word, 4, 4);
	if (allocates(call))
		allocations_init(&counted->allocations, f);
}

/* From its end: each call splits the block, and what is behind it has to move. */
static void count_in(struct rewrite *rewrite, struct block *b, struct counted *counted)
{
	struct sequence s;

	for (struct instruction *i = b->last, *prev; i; i = prev) {
		prev = i->prev;
		if (!calls_driver(i) || !find_sequence(&s, i))
			continue;
		prev = s.first->prev;
		init_counted(counted, rewrite->function, i);
		count(rewrite, counted, &s, i);
	}
}

static void run(struct rewrite *rewrite)
{
	struct function *f = rewrite->function;
	struct counted counted = {.turn = NULL};
	unsigned n = 0;

	for_each_instruction (i, f)
		n += calls_driver(i);
	if (n > CALLS_MAX || !pass_has_isa(f->module, 6, 3) || pass_target(f->module) < 70)
		return;
	for (struct block *b = f->entry, *next; b; b = next) {
		next = b->next;
		count_in(rewrite, b, &counted);
	}
}

const struct pass pass_calls = {"calls", run};
