/* Makes instructions out of table rows. A .def file is included twice: once to define a function
 * for each row, once to list them in a table of struct ptx_plain.
 *
 *   ALU1(name, type of d, type of a, value)             d = value, of a
 *   ALU2, ALU3, ALU4                                    of a, b, c, e
 *   FUSED(name, type, value)                            an ALU3 with a fused multiply-add
 *   SERIAL2, SERIAL3                                    the value has an effect on the warp too
 */
#pragma once

#include "simcuda/ptx/execute/warp.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;
typedef double f64;

#define PTX_EXEC(name)                                                                 \
	static enum ptx_flow exec_##name(struct ptx_warp *w, const struct ptx_insn *i, \
					 uint32_t mask)

#define PTX_DEFINE_ALU1(name, td, ta, ...)                                                       \
	PTX_EXEC(name)                                                                           \
	{                                                                                        \
		td *d_ = ptx_row(w, i->op[0]);                                                   \
		const ta *a_ = ptx_row(w, i->op[1]);                                             \
		PTX_FOR_LANES(mask, lane, const ta a = a_[lane]; d_[lane] = (td)(__VA_ARGS__);); \
		return PTX_NEXT;                                                                 \
	}
#define PTX_DEFINE_ALU2(name, td, ta, tb, ...)                                          \
	PTX_EXEC(name)                                                                  \
	{                                                                               \
		td *d_ = ptx_row(w, i->op[0]);                                          \
		const ta *a_ = ptx_row(w, i->op[1]);                                    \
		const tb *b_ = ptx_row(w, i->op[2]);                                    \
		PTX_FOR_LANES(mask, lane, const ta a = a_[lane]; const tb b = b_[lane]; \
			      d_[lane] = (td)(__VA_ARGS__););                           \
		return PTX_NEXT;                                                        \
	}
#define PTX_DEFINE_ALU3(name, td, ta, tb, tc, ...)                                      \
	PTX_EXEC(name)                                                                  \
	{                                                                               \
		td *d_ = ptx_row(w, i->op[0]);                                          \
		const ta *a_ = ptx_row(w, i->op[1]);                                    \
		const tb *b_ = ptx_row(w, i->op[2]);                                    \
		const tc *c_ = ptx_row(w, i->op[3]);                                    \
		PTX_FOR_LANES(mask, lane, const ta a = a_[lane]; const tb b = b_[lane]; \
			      const tc c = c_[lane]; d_[lane] = (td)(__VA_ARGS__););    \
		return PTX_NEXT;                                                        \
	}
#define PTX_DEFINE_ALU4(name, td, ta, tb, tc, t4, ...)                                  \
	PTX_EXEC(name)                                                                  \
	{                                                                               \
		td *d_ = ptx_row(w, i->op[0]);                                          \
		const ta *a_ = ptx_row(w, i->op[1]);                                    \
		const tb *b_ = ptx_row(w, i->op[2]);                                    \
		const tc *c_ = ptx_row(w, i->op[3]);                                    \
		const t4 *e_ = ptx_row(w, i->op[4]);                                    \
		PTX_FOR_LANES(mask, lane, const ta a = a_[lane]; const tb b = b_[lane]; \
			      const tc c = c_[lane]; const t4 e = e_[lane];             \
			      d_[lane] = (td)(__VA_ARGS__););                           \
		return PTX_NEXT;                                                        \
	}

/* A row that some CPUs have an instruction for: compiled twice. */
#ifdef __x86_64__
#define PTX_DEFINE_FUSED(name, t, ...)                                                            \
	PTX_DEFINE_ALU3(name##_portable, t, t, t, t, __VA_ARGS__)                                 \
	__attribute__((target("avx2,fma"))) PTX_DEFINE_ALU3(name##_fast, t, t, t, t, __VA_ARGS__) \
		PTX_EXEC(name)                                                                    \
	{                                                                                         \
		return __builtin_cpu_supports("fma") ? exec_##name##_fast(w, i, mask)             \
						     : exec_##name##_portable(w, i, mask);        \
	}
#else
#define PTX_DEFINE_FUSED(name, t, ...) PTX_DEFINE_ALU3(name, t, t, t, t, __VA_ARGS__)
#endif

/* The same, lane after lane: `carry(x)` reads or writes this lane's bit of CC.CF. */
#define PTX_DEFINE_SERIAL2(name, td, ta, tb, ...)                            \
	PTX_EXEC(name)                                                       \
	{                                                                    \
		td *d_ = ptx_row(w, i->op[0]);                               \
		const ta *a_ = ptx_row(w, i->op[1]);                         \
		const tb *b_ = ptx_row(w, i->op[2]);                         \
		for (uint32_t rest = mask; rest; rest &= rest - 1) {         \
			const uint32_t lane = (uint32_t)__builtin_ctz(rest); \
			const ta a = a_[lane];                               \
			const tb b = b_[lane];                               \
			d_[lane] = (td)(__VA_ARGS__);                        \
		}                                                            \
		return PTX_NEXT;                                             \
	}
#define PTX_DEFINE_SERIAL3(name, td, ta, tb, tc, ...)                        \
	PTX_EXEC(name)                                                       \
	{                                                                    \
		td *d_ = ptx_row(w, i->op[0]);                               \
		const ta *a_ = ptx_row(w, i->op[1]);                         \
		const tb *b_ = ptx_row(w, i->op[2]);                         \
		const tc *c_ = ptx_row(w, i->op[3]);                         \
		for (uint32_t rest = mask; rest; rest &= rest - 1) {         \
			const uint32_t lane = (uint32_t)__builtin_ctz(rest); \
			const ta a = a_[lane];                               \
			const tb b = b_[lane];                               \
			const tc c = c_[lane];                               \
			d_[lane] = (td)(__VA_ARGS__);                        \
		}                                                            \
		return PTX_NEXT;                                             \
	}
#define PTX_LIST_ALU1(name, td, ta, ...) {#name, exec_##name, 2, {sizeof(td), sizeof(ta)}},
#define PTX_LIST_ALU2(name, td, ta, tb, ...) \
	{#name, exec_##name, 3, {sizeof(td), sizeof(ta), sizeof(tb)}},
#define PTX_LIST_ALU3(name, td, ta, tb, tc, ...) \
	{#name, exec_##name, 4, {sizeof(td), sizeof(ta), sizeof(tb), sizeof(tc)}},
#define PTX_LIST_ALU4(name, td, ta, tb, tc, t4, ...) \
	{#name, exec_##name, 5, {sizeof(td), sizeof(ta), sizeof(tb), sizeof(tc), sizeof(t4)}},
#define PTX_LIST_FUSED(name, t, ...) PTX_LIST_ALU3(name, t, t, t, t, __VA_ARGS__)
#define PTX_LIST_SERIAL2             PTX_LIST_ALU2
#define PTX_LIST_SERIAL3             PTX_LIST_ALU3
