/* wgmma.mma_async, decoded. Each of the four warps of a warp group computes 16 of the 64 rows. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PTX_MATRIX_DEPTH   16u  /* columns of A, rows of B */
#define PTX_MATRIX_COLUMNS 256u /* at most, of B and D */

struct ptx_matrix {
	uint32_t columns;
	bool bfloat;   /* A and B are of bfloat16, else of half */
	bool negative; /* A times B is subtracted */
	bool a_in_registers;
	uint32_t a[4]; /* rows of registers */
	uint32_t d[PTX_MATRIX_COLUMNS / 2];
};

enum ptx_matrix_operand { PTX_MATRIX_A, PTX_MATRIX_B, PTX_MATRIX_ADD };
