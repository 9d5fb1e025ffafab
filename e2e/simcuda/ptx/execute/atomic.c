/* atom and red: the CPU's atomic operations, sequentially consistent whatever the qualifiers ask
 * for. Lanes go one after the other. */
#include "simcuda/ptx/execute/executors.h"

#include "simcuda/ptx/execute/half.h"
#include "simcuda/ptx/execute/memory.h"

#define ADD_PAIR(t, a, b)                                                                \
	(ptx_to_##t(ptx_from_##t((uint16_t)(a)) + ptx_from_##t((uint16_t)(b)), PTX_RN) | \
	 (uint32_t)ptx_to_##t(ptx_from_##t((uint16_t)((a) >> 16)) +                      \
				      ptx_from_##t((uint16_t)((b) >> 16)),               \
			      PTX_RN)                                                    \
		 << 16)

/* @BODY sets `old` from `at` and `b`. */
#define ATOMIC(name, type, ...)                                                        \
	static enum ptx_flow exec_##name(struct ptx_warp *w, const struct ptx_insn *i, \
					 uint32_t mask)                                \
	{                                                                              \
		type *d = i->op[1] == PTX_NO_ROW ? NULL : ptx_row(w, i->op[1]);        \
		const type *values = ptx_row(w, i->op[2]);                             \
		uint8_t *host[PTX_LANES];                                              \
		if (!ptx_resolve(w, i, mask, sizeof(type), host))                      \
			return PTX_FAULT;                                              \
		for (; mask; mask &= mask - 1) {                                       \
			uint32_t lane = (uint32_t)__builtin_ctz(mask);                 \
			type *at = (type *)(void *)host[lane], old;                    \
			const type b = values[lane];                                   \
			__VA_ARGS__                                                    \
			if (d)                                                         \
				d[lane] = old;                                         \
		}                                                                      \
		return PTX_NEXT;                                                       \
	}

#define SWAP_UNTIL_SAME(at, old, new_value)                                                        \
	do {                                                                                       \
		old = __atomic_load_n(at, __ATOMIC_RELAXED);                                       \
		for (;;) {                                                                         \
			__typeof__(old) value_ = (new_value);                                      \
			if (__atomic_compare_exchange_n(at, &old, value_, false, __ATOMIC_SEQ_CST, \
							__ATOMIC_SEQ_CST))                         \
				break;                                                             \
		}                                                                                  \
	} while (0)

static uint32_t add_f32(uint32_t old, uint32_t b)
{
	float x, y;

	memcpy(&x, &old, sizeof(x));
	memcpy(&y, &b, sizeof(y));
	x += y;
	memcpy(&old, &x, sizeof(x));
	return x != x ? 0x7fffffff : old;
}

static uint64_t add_f64(uint64_t old, uint64_t b)
{
	double x, y;

	memcpy(&x, &old, sizeof(x));
	memcpy(&y, &b, sizeof(y));
	x += y;
	memcpy(&old, &x, sizeof(x));
	return old;
}

#define FETCH(name, type, operation) ATOMIC(name, type, old = operation(at, b, __ATOMIC_SEQ_CST);)
#define MODIFY(name, type, ...)      ATOMIC(name, type, SWAP_UNTIL_SAME(at, old, (type)(__VA_ARGS__));)
#include "simcuda/ptx/execute/atomic.def"
#undef FETCH
#undef MODIFY

#define CAS(name, type)                                                                          \
	ATOMIC(name, type, old = b;                                                              \
	       __atomic_compare_exchange_n(at, &old, ((const type *)ptx_row(w, i->op[3]))[lane], \
					   false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);)
CAS(cas_b16, uint16_t)
CAS(cas_b32, uint32_t)
CAS(cas_b64, uint64_t)

ptx_exec *ptx_atomic_find(const char *name)
{
	static const struct {
		const char *name;
		ptx_exec *exec;
	} operations[] = {
#define FETCH(id, ...)  {#id, exec_##id},
#define MODIFY(id, ...) {#id, exec_##id},
#include "simcuda/ptx/execute/atomic.def"
		{"cas_b16", exec_cas_b16},
		{"cas_b32", exec_cas_b32},
		{"cas_b64", exec_cas_b64},
	};

	for (size_t k = 0; k < sizeof(operations) / sizeof(operations[0]); k++)
		if (strcmp(operations[k].name, name) == 0)
			return operations[k].exec;
	return NULL;
}
