/* mov's special forms: packing and unpacking, clocks. */
#include "simcuda/ptx/execute/executors.h"

#include "simcuda/ptx/execute/warp.h"

#include <time.h>

static uint64_t element(const void *row, uint32_t lane, uint32_t bytes)
{
	return bytes == 4   ? ((const uint32_t *)row)[lane]
	       : bytes == 2 ? ((const uint16_t *)row)[lane]
	       : bytes == 1 ? ((const uint16_t *)row)[lane] & 0xff
			    : ((const uint64_t *)row)[lane];
}

static void set_element(void *row, uint32_t lane, uint32_t bytes, uint64_t value)
{
	if (bytes == 8)
		((uint64_t *)row)[lane] = value;
	else if (bytes == 4)
		((uint32_t *)row)[lane] = (uint32_t)value;
	else
		((uint16_t *)row)[lane] = bytes == 1 ? (uint8_t)value : (uint16_t)value;
}

/* The first element is the lowest. */
enum ptx_flow ptx_exec_pack(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	const struct ptx_access *a = &i->access;
	uint64_t values[PTX_LANES];

	for (uint32_t lane = 0; lane < PTX_LANES; lane++)
		values[lane] = 0;
	for (uint32_t k = 0; k < a->count; k++) {
		const void *row = ptx_row(w, i->op[k + 1]);
		PTX_FOR_LANES(mask, lane,
			      values[lane] |= element(row, lane, a->bytes) << (8 * k * a->bytes););
	}
	void *d = ptx_row(w, i->op[0]);
	PTX_FOR_LANES(mask, lane, set_element(d, lane, a->row_bytes, values[lane]););
	return PTX_NEXT;
}

enum ptx_flow ptx_exec_unpack(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	const struct ptx_access *a = &i->access;
	const void *source = ptx_row(w, i->op[0]);
	uint64_t values[PTX_LANES];

	/* A destination may be the source's own register. */
	PTX_FOR_LANES(mask, lane, values[lane] = element(source, lane, a->row_bytes););
	for (uint32_t k = 0; k < a->count; k++) {
		void *row = ptx_row(w, i->op[k + 1]);
		PTX_FOR_LANES(
			mask, lane,
			set_element(row, lane, a->bytes, values[lane] >> (8 * k * a->bytes)););
	}
	return PTX_NEXT;
}

static uint64_t nanoseconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

enum ptx_flow ptx_exec_clock(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	enum ptx_clock which = (enum ptx_clock)i->imm;
	bool timer = which == PTX_TIMER || which == PTX_TIMER_LOW || which == PTX_TIMER_HIGH;
	uint64_t value = nanoseconds(timer ? CLOCK_REALTIME : CLOCK_MONOTONIC);
	void *d = ptx_row(w, i->op[0]);

	if (which == PTX_CLOCK_HIGH || which == PTX_TIMER_HIGH)
		value >>= 32;
	PTX_FOR_LANES(mask, lane, set_element(d, lane, i->access.row_bytes, value););
	return PTX_NEXT;
}
