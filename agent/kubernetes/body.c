#include "kubernetes/body.h"

#include <stdlib.h>
#include <string.h>

#define KEEP 65536 /* a larger buffer is freed after use */

void body_clear(struct body *body)
{
	body->n = 0;
	if (body->room > KEEP) {
		free(body->text);
		*body = (struct body){0};
	}
}

bool body_add(struct body *body, const char *text, size_t n, size_t max)
{
	if (n > max || body->n > max - n)
		return false;
	if (body->n + n > body->room) {
		size_t room = body->room ? body->room : 4096;
		while (room < body->n + n)
			room *= 2;
		char *grown = realloc(body->text, room);
		if (!grown)
			return false;
		body->text = grown;
		body->room = room;
	}
	memcpy(body->text + body->n, text, n);
	body->n += n;
	return true;
}

void body_deinit(struct body *body)
{
	free(body->text);
}
