#include "passes/async/async.h"

#include "analysis/async.h"
#include "passes/detach.h"

#include <string.h>

#define ENTRY 8u /* bytes: an address in shared memory; also of the count in front of them */

static bool is_mbarrier(const struct instruction *i, const char *what)
{
	return !strcmp(i->mnemonic->name, "mbarrier") && mnemonic_has(i->mnemonic, what);
}

/* The address in shared memory of an mbarrier. */
static struct operand address_of(struct cursor *at, struct rewrite *rewrite,
				 const struct instruction *i)
{
	struct operand address = op_reg(edit_register(rewrite->function, TYPE_b64)), item;
	uint64_t offset;

	if (!i->operand_count || i->operands[0].kind != OPERAND_ADDRESS ||
	    i->operands[0].item_count != 1 || !symbol_offset(&i->operands[0].items[0], &offset))
		pass_refuse(rewrite, i->at, "an mbarrier at an address of unknown form");
	item = i->operands[0].items[0];
	item.suffix = NULL;
	if (item.kind == OPERAND_REGISTER && types[item.reg->type].bits == 32)
		edit_code(at, "cvt.u64.u32 %0, %1;", address, item);
	else
		edit_code(at, "mov.u64 %0, %1;", address, item);
	edit_code(at, "add.u64 %0, %0, %1;", address, op_int(offset));
	if (item.kind == OPERAND_REGISTER && !mnemonic_has(i->mnemonic, "shared") &&
	    !mnemonic_has(i->mnemonic, "shared::cta"))
		edit_code(at, "cvta.to.shared.u64 %0, %0;", address);
	return address;
}

static void note(struct rewrite *rewrite, struct instruction *init, bool may_repeat)
{
	struct cursor at;

	if (may_repeat || init->block->loop)
		pass_refuse(rewrite, init->at, "initialises mbarriers in a loop");
	if (init->guard)
		edit_unguard(rewrite->function, init);
	at = cursor_after(rewrite->function, init);
	edit_code(&at,
		  "{ .reg .b32 %n; .reg .b64 %to, %list; ld.local.u32 %n, [%1]; mov.u64 %list, %1;"
		  "  mul.wide.u32 %to, %n, 8; add.u64 %to, %to, %list; st.local.u64 [%to+8], %0;"
		  "  add.u32 %n, %n, 1; st.local.u32 [%1], %n; }",
		  address_of(&at, rewrite, init), op_variable(rewrite->async->list));
}

/* Whatever the kernel itself invalidates may become ordinary memory. */
static void forget(struct rewrite *rewrite, struct instruction *inval)
{
	struct cursor at;

	if (inval->guard)
		edit_unguard(rewrite->function, inval);
	at = cursor_after(rewrite->function, inval);
	edit_code(&at,
		  "{ .reg .pred %p; .reg .b32 %n; .reg .b64 %at, %a; ld.local.u32 %n, [%1];"
		  "  mov.u64 %a, %1; mul.wide.u32 %at, %n, 8; add.u64 %at, %at, %a;"
		  "again: setp.eq.u32 %p, %n, 0; @%p bra end; ld.local.u64 %a, [%at];"
		  "  setp.eq.u64 %p, %a, %0; @%p mov.u64 %a, -1; @%p st.local.u64 [%at], %a;"
		  "  sub.u32 %n, %n, 1; sub.u64 %at, %at, 8; bra again; end: }",
		  address_of(&at, rewrite, inval), op_variable(rewrite->async->list));
}

static void note_mbarriers(struct rewrite *rewrite, const struct cfg *cfg)
{
	struct function *f = rewrite->function;
	unsigned inits = 0;
	struct cursor at;

	for_each_instruction (i, f)
		inits += is_mbarrier(i, "init");
	if (!inits)
		return;
	rewrite->async->list =
		edit_variable(f, SPACE_LOCAL, "mbarriers", ENTRY, (uint64_t)ENTRY * (inits + 1));
	for_each_instruction (i, f) {
		if (is_mbarrier(i, "init"))
			note(rewrite, i, cfg->irreducible);
		else if (is_mbarrier(i, "inval"))
			forget(rewrite, i);
	}
	at = cursor_start(f, edit_block(f, NULL, "begin"));
	edit_code(&at, "{ .reg .b32 %n; mov.u32 %n, 0; st.local.u32 [%0], %n; }",
		  op_variable(rewrite->async->list));
}

bool async_keeps_shared(const struct rewrite *rewrite)
{
	return rewrite->async && (rewrite->async->list || rewrite->async->has_proxy);
}

void async_await(struct cursor *at, struct rewrite *rewrite)
{
	const struct async *async = rewrite->async;

	if (!async)
		return;
	if (async->has_copies)
		edit_code(at, "cp.async.wait_all;");
	if (async->has_stores)
		edit_code(at, "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;");
	if (async->has_proxy)
		edit_code(at, "fence.proxy.async.shared::cta;");
}

bool async_invalidate(struct cursor *at, struct rewrite *rewrite)
{
	if (!rewrite->async || !rewrite->async->list)
		return false;
	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %n; .reg .b64 %at, %a; ld.local.u32 %n, [%0];"
		  "  mov.u64 %a, %0; mul.wide.u32 %at, %n, 8; add.u64 %at, %at, %a;"
		  "again: setp.eq.u32 %p, %n, 0; @%p bra end; ld.local.u64 %a, [%at];"
		  "  setp.ne.u64 %p, %a, -1; @%p mbarrier.inval.shared.b64 [%a];"
		  "  sub.u32 %n, %n, 1; sub.u64 %at, %at, 8; bra again; end: }",
		  op_variable(rewrite->async->list));
	return true;
}

static void run(struct rewrite *rewrite)
{
	struct function *f = rewrite->function;
	struct async *async = arena_new(f->arena, struct async);
	const struct instruction *unawaited;
	bool is_used = false, multiplies;
	struct cfg cfg;

	for_each_instruction (i, f)
		is_used = is_used || i->mnemonic->op_class == OP_ASYNC;
	if (!is_used)
		return;
	cfg_build(f, &cfg);
	rewrite->async = async;
	async->has_copies = async_has(f, ASYNC_COPY);
	async->has_stores = async_has(f, ASYNC_STORE);
	multiplies = async_has(f, ASYNC_MATRIX);
	async->has_proxy = async->has_stores || multiplies || async_has(f, ASYNC_LOAD);
	unawaited = multiplies ? async_unawaited_exit(f, &cfg) : NULL;
	if (unawaited)
		pass_refuse(rewrite, unawaited->at,
			    "threads may exit before their wgmma.mma_async is complete");
	note_mbarriers(rewrite, &cfg);
}

const struct pass pass_async = {"async", run};
