/* The functions that execute instructions. Decoders put their addresses into instructions. */
#pragma once

#include "simcuda/ptx/program/insn.h"

ptx_exec ptx_exec_float_mode, ptx_exec_setp, ptx_exec_set, ptx_exec_convert;
ptx_exec ptx_exec_brx, ptx_exec_call, ptx_exec_ret, ptx_exec_exit, ptx_exec_trap;
ptx_exec ptx_exec_barrier, ptx_exec_sync, ptx_exec_activemask, ptx_exec_pause, ptx_exec_fence;
ptx_exec ptx_exec_permit, ptx_exec_await_grids;
ptx_exec ptx_exec_nothing, ptx_exec_clock, ptx_exec_frame_address, ptx_exec_to_generic;
ptx_exec ptx_exec_from_generic, ptx_exec_is_space, ptx_exec_pack, ptx_exec_unpack;
ptx_exec ptx_exec_bulk, ptx_exec_bulk_commit, ptx_exec_bulk_wait, ptx_exec_wgmma,
	ptx_exec_group_wait;
ptx_exec ptx_exec_mbarrier, ptx_exec_load, ptx_exec_store, ptx_exec_load_param, ptx_exec_copy;
ptx_compare *ptx_compare_find(const char *name);
ptx_exec *ptx_atomic_find(const char *name);

/* Shared by executors. */
void ptx_round_set(enum ptx_round round);
void ptx_flush(enum ptx_type type, void *to, const void *from);
void ptx_row_copy(void *to, const void *from, uint32_t mask, uint32_t bytes);
