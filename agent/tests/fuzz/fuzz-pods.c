/* Any answer of an API server, as a list and as an event. */
#include "kubernetes/podlist.h"
#include "tests/pod-names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct pod *pod)
{
	if (!pod->uid[0] || !pod->cgroup_uid[0] || !pod_equal(pod, pod) ||
	    pod_container(pod, "none"))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct podlist_event event;
	struct podlist list;

	if (podlist_parse(&list, text, size, &pod_names, 16) == 0) {
		for (size_t i = 0; i < list.n; i++)
			check(list.pods[i]);
		podlist_deinit(&list);
	}
	if (podlist_parse_event(&event, text, size, &pod_names) == 0) {
		if (event.pod)
			check(event.pod);
		podlist_event_deinit(&event);
	}
	return 0;
}
