/* Hooks of the driver's linker, by which programs make modules of PTX: its input is kept for its
 * output. If several inputs have PTX none is kept, because a kernel may call from one into another.
 */
#pragma once

/* In a forked child. */
void linker_fork(void);
