/* Any text as /proc/PID/cgroup: the result must be well-formed. */
#include "kubernetes/container.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *text, size_t room, int (*allowed)(int), const char *also)
{
	if (strnlen(text, room) == room)
		abort();
	for (; *text; text++)
		if (!allowed((unsigned char)*text) && !strchr(also, *text))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct container_identity found = {0};
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (container_parse_cgroup(&found, text) == 0) {
		check(found.pod_uid, sizeof(found.pod_uid), isalnum, "-");
		check(found.container_id, sizeof(found.container_id), isxdigit, "");
		if (found.in_pod != (found.pod_uid[0] != '\0') ||
		    found.in_pod != (found.qos != CONTAINER_QOS_NONE) || found.cgroup[0] != '/')
			abort();
	}
	free(text);
	return 0;
}
