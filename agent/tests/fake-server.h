/* The MPS server that ends a process's work. The linker must replace mps_end_work(). */
#pragma once

#include "mps/mps.h"

extern struct fake_server {
	enum mps_ending says;
	unsigned asked;
	/* What it must be asked for. */
	const struct gpu *gpu;
	const pid_t *pid;
} server;
