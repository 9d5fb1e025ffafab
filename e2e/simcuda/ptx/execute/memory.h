/* Addresses of a warp's lanes to addresses of this process, checked. */
#pragma once

#include "simcuda/ptx/execute/warp.h"

/* @host[lane] of the active lanes: where each lane's @size bytes are. The address is row op[0] plus
 * imm in the instruction's state space. False: a fault was reported. */
bool ptx_resolve(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask, uint32_t size,
		 uint8_t *host[PTX_LANES]);

/* The same of generic or global addresses that are already added up. */
bool ptx_resolve_global(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask, uint32_t size,
			const uint64_t address[PTX_LANES], uint8_t *host[PTX_LANES]);

/* Where @size bytes at a global address are, of any alignment. False: a fault was reported. */
bool ptx_global_range(struct ptx_warp *w, const struct ptx_insn *i, uint64_t address, uint64_t size,
		      uint8_t **host);

/* Copies @size bytes from a lane's generic address, of any alignment. False: a fault was reported.
 */
bool ptx_read_generic(struct ptx_warp *w, const struct ptx_insn *i, uint32_t lane, uint64_t address,
		      uint32_t size, void *out);
