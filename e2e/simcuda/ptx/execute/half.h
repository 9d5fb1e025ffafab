/* Floating-point formats narrower than float: bits to numbers and back. */
#pragma once

#include "simcuda/ptx/program/insn.h"

double ptx_from_f16(uint16_t bits);
double ptx_from_bf16(uint16_t bits);
uint16_t ptx_to_f16(double value, enum ptx_round round);
uint16_t ptx_to_bf16(double value, enum ptx_round round);
/* A float with 10 bits of mantissa, as a float's bits. */
uint32_t ptx_to_tf32(double value, enum ptx_round round);

/* @a * @b + @c, @a * @b being exact, rounded so that a second rounding to a much narrower format is
 * the only one that counts ('to odd'). */
double ptx_fma_odd(double a, double b, double c);
/* Likewise for an integer. */
double ptx_integer_odd(uint64_t magnitude);
