/* Random status pages, one after the other: totals only grow, and metrics stay valid text. */
#include "metrics/metrics.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct gpu gpu = {.id = "GPU-a"};

static void check_lines(const char *text)
{
	for (; *text; text = strchr(text, '\n') + 1)
		if ((strncmp(text, "# ", 2) != 0 && strncmp(text, "weir_", 5) != 0) ||
		    !strchr(text, '\n'))
			abort();
}

static void check_metrics(struct tenants *tenants)
{
	struct metrics_input input = {.tenants = tenants, .policy = "hpf"};
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	if (!out || metrics_write(out, &input) < 0)
		abort();
	fclose(out);
	check_lines(text);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct container_identity identity = {.cgroup = "/a"};
	struct weir_status_page page = {0};
	struct client client = {.gpu = &gpu, .pages.status = &page};
	struct account before = {0};
	struct tenants tenants = {0};
	struct tenant *tenant;
	struct usage *usage;

	if (tenants_enter(&tenants, &identity, &tenant) < 0 ||
	    !(usage = tenant_usage(tenant, &gpu)))
		abort();
	tenant->clients = &client;
	tenant->slo = 2000000;
	client.tenant = tenant;
	/* The fields lie in the first 84 bytes. */
	for (size_t at = 0; at < size; at += 84) {
		memcpy(&page, data + at, size - at < 84 ? size - at : 84);
		tenant_read(tenant);
		for (int i = 0; i < ACCOUNT_COUNTERS; i++)
			if (usage->account.total[i] < before.total[i] ||
			    usage->account.total[i] - before.total[i] > ACCOUNT_STEP_MAX)
				abort();
		if (client.account.level > WEIR_LEVELS)
			abort();
		before = usage->account;
	}
	tenant->clients = NULL;
	check_metrics(&tenants);
	tenants_deinit(&tenants);
	return 0;
}
