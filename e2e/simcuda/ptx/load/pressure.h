/* A kernel's registers on real hardware, estimated. */
#pragma once

#include "simcuda/ptx/program/program.h"

/* 32-bit registers of a thread: an estimate. No memory: the least. */
uint32_t ptx_pressure(const struct ptx_module *module, const struct ptx_function *f);
