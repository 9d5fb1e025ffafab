/* Copies between staging buffers and the GPU, by copy engines. */
#pragma once

#include "loop/inside.h"

/* Events of all pieces. -EIO. */
int copies_init(struct weir_loop *loop);
/* The copies have ended. */
void copies_deinit(struct weir_loop *loop);

/* The piece's data to the GPU, soon; transfer_copied() follows. */
void copies_in(struct weir_loop *loop, struct piece *piece);
/* From the GPU into the piece. */
void copies_out(struct weir_loop *loop, struct piece *piece);

/* Begins copies that are due. */
void copies_begin(struct weir_loop *loop);
/* True: some have ended. */
bool copies_look(struct weir_loop *loop);
