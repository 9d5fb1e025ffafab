#include "loop/governed.h"

void governed_begin(struct weir_loop *loop)
{
	(void)loop;
}

void governed_end(struct weir_loop *loop)
{
	(void)loop;
}

void governed_launch(struct weir_loop *loop, struct weir_loop_args *args)
{
	(void)loop;
	(void)args;
}

void governed_left(struct weir_loop *loop, uint32_t reason)
{
	(void)loop;
	(void)reason;
}

bool governed_changed(struct weir_loop *loop)
{
	(void)loop;
	return false;
}
