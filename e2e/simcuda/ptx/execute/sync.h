/* Encodings of synchronising instructions, for the decoder and the executor. */
#pragma once

enum ptx_barrier_variant {
	PTX_BARRIER_SYNC,
	PTX_BARRIER_ARRIVE,
	PTX_BARRIER_POPC,
	PTX_BARRIER_AND,
	PTX_BARRIER_OR,
};

enum ptx_sync_kind {
	PTX_SYNC_BARRIER,
	PTX_SYNC_SHFL,
	PTX_SYNC_VOTE,
	PTX_SYNC_MATCH,
	PTX_SYNC_REDUX,
	PTX_SYNC_ELECT,
};

enum ptx_shfl { PTX_SHFL_UP, PTX_SHFL_DOWN, PTX_SHFL_BFLY, PTX_SHFL_IDX };
enum ptx_vote { PTX_VOTE_ALL, PTX_VOTE_ANY, PTX_VOTE_UNI, PTX_VOTE_BALLOT };
enum ptx_match { PTX_MATCH_ANY, PTX_MATCH_ALL };
enum ptx_redux {
	PTX_REDUX_ADD,
	PTX_REDUX_MIN_U,
	PTX_REDUX_MIN_S,
	PTX_REDUX_MAX_U,
	PTX_REDUX_MAX_S,
	PTX_REDUX_AND,
	PTX_REDUX_OR,
	PTX_REDUX_XOR,
};

/* Operands of such an instruction. */
enum ptx_sync_operand {
	PTX_SYNC_MEMBERS,
	PTX_SYNC_RESULT,
	PTX_SYNC_SECOND, /* a predicate beside the result */
	PTX_SYNC_A,
	PTX_SYNC_B,
	PTX_SYNC_C,
};

enum ptx_mbarrier_operation {
	PTX_MBARRIER_INIT,
	PTX_MBARRIER_INVAL,
	PTX_MBARRIER_ARRIVE,
	PTX_MBARRIER_DROP,
	PTX_MBARRIER_WAIT,
	PTX_MBARRIER_WAIT_PARITY,
	PTX_MBARRIER_EXPECT,        /* more bytes */
	PTX_MBARRIER_COMPLETE,      /* of them */
	PTX_MBARRIER_ARRIVE_EXPECT, /* expects, then arrives */
};

enum ptx_bulk_kind { PTX_BULK_LOAD, PTX_BULK_STORE, PTX_TENSOR_LOAD, PTX_TENSOR_STORE };

/* Operands of a bulk copy. Each address is a row and a row with what is added. */
enum ptx_bulk_operand {
	PTX_BULK_SHARED,
	PTX_BULK_SHARED_ADD,
	PTX_BULK_GLOBAL, /* of bytes, or of a tensor map */
	PTX_BULK_GLOBAL_ADD,
	PTX_BULK_BARRIER, /* loads */
	PTX_BULK_BARRIER_ADD,
	PTX_BULK_SIZE,               /* of bytes */
	PTX_BULK_AT = PTX_BULK_SIZE, /* of a tensor: up to five coordinates */
};
