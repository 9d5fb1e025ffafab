#include "client/lesson.h"

#include <errno.h>
#include <string.h>

#define FULL_AGAIN (50 * NS_PER_MS) /* the socket was full */

static struct lesson {
	_Atomic uint32_t owner; /* the client's index + 1: the link thread's; 0: the worker's */
	struct weir_learned message;
} lessons[LESSONS_MAX];

#define lesson_for_each(l) for (struct lesson * (l) = lessons; (l) < lessons + LESSONS_MAX; (l)++)

bool lesson_put(const struct client *client, const uint8_t kernel[32],
		const struct weir_profile *profile)
{
	lesson_for_each(lesson)
	{
		if (load_acquire(&lesson->owner))
			continue;
		lesson->message = (struct weir_learned){.profile = *profile};
		weir_header_init(&lesson->message.header, WEIR_LEARNED, sizeof(lesson->message));
		memcpy(lesson->message.kernel, kernel, sizeof(lesson->message.kernel));
		store_release(&lesson->owner, client->index + 1);
		return true;
	}
	return false;
}

uint64_t lesson_send(const struct client *client, int socket, uint64_t now)
{
	lesson_for_each(lesson)
	{
		if (load_acquire(&lesson->owner) != client->index + 1)
			continue;
		int r = weir_message_send(socket, &lesson->message, sizeof(lesson->message), NULL,
					  0);
		if (r == -EAGAIN)
			return now + FULL_AGAIN;
		store_release(&lesson->owner, 0);
	}
	return UINT64_MAX;
}

void lesson_reset(const struct client *client)
{
	uint32_t owner = client->index + 1;

	lesson_for_each(lesson)
	{
		if (load_acquire(&lesson->owner) == owner)
			store_release(&lesson->owner, 0);
	}
}
