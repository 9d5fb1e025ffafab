#include "config/config-take.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "weir/base.h"

#define SWAP(member)                                                \
	do {                                                        \
		__typeof__(config->member) other_ = config->member; \
		config->member = next->member;                      \
		next->member = other_;                              \
	} while (0)

static void take_live(struct config *config, struct config *next)
{
	SWAP(policy);
	SWAP(scheduling);
	SWAP(mode);
	SWAP(memory_default);
	SWAP(gpus);
	SWAP(n_gpus);
	SWAP(health);
	SWAP(unregistered);
	SWAP(log_level);
	SWAP(clients);
	SWAP(clients_per_container);
	SWAP(rules);
	SWAP(n_rules);
	SWAP(levels.by_default);
	SWAP(levels.best_effort);
	SWAP(levels.burstable);
	SWAP(levels.guaranteed);
	SWAP(levels.classes);
	SWAP(levels.n_classes);
	SWAP(levels.raise);
	SWAP(levels.n_raise);
	SWAP(mps.keep);
	SWAP(mps.keeper);
	SWAP(mps.multi_user);
	SWAP(mps.required);
	SWAP(mps.check);
}

/* Where the rest is: a key, and how its values are compared. */
enum kind { TEXT, NUMBER, TRUTH };

#define AT(member) offsetof(struct config, member)

static const struct {
	const char *key;
	enum kind kind;
	size_t offset;
} fixed[] = {
	{"socket", TEXT, AT(socket)},
	{"stateDir", TEXT, AT(state_dir)},
	{"metrics.address", TEXT, AT(metrics_address)},
	{"control.socket", TEXT, AT(control_socket)},
	{"nvml", TEXT, AT(nvml)},
	{"kubernetes.enabled", TRUTH, AT(kubernetes.enabled)},
	{"kubernetes.events", TRUTH, AT(kubernetes.events)},
	{"kubernetes.nodeLabels", TRUTH, AT(kubernetes.node_labels)},
	{"kubernetes.kubeconfig", TEXT, AT(kubernetes.kubeconfig)},
	{"kubernetes.nodeName", TEXT, AT(kubernetes.node)},
	{"kubernetes.resourceName", TEXT, AT(kubernetes.resource)},
	{"levels.annotation", TEXT, AT(levels.annotation)},
	{"levels.latencyAnnotation", TEXT, AT(levels.latency_annotation)},
	{"levels.memoryAnnotation", TEXT, AT(levels.memory_annotation)},
	{"levels.weightAnnotation", TEXT, AT(levels.weight_annotation)},
	{"compile.mode", NUMBER, AT(compile.mode)},
	{"compile.program", TEXT, AT(compile.program)},
	{"compile.helpers", NUMBER, AT(compile.helpers)},
	{"compile.memoryMiB", NUMBER, AT(compile.memory_mib)},
	{"compile.seconds", NUMBER, AT(compile.seconds)},
	{"compile.cacheDir", TEXT, AT(compile.cache_dir)},
	{"compile.cacheMiB", NUMBER, AT(compile.cache_mib)},
	{"mps.program", TEXT, AT(mps.program)},
	{"mps.root", TEXT, AT(mps.root)},
	{"mps.dir", TEXT, AT(mps.dir)},
};

static_assert(sizeof(enum config_compile_mode) == sizeof(uint32_t), "a NUMBER");

static bool differs(enum kind kind, const void *a, const void *b)
{
	if (kind == TEXT)
		return strcmp(*(char *const *)a, *(char *const *)b) != 0;
	return memcmp(a, b, kind == TRUTH ? sizeof(bool) : sizeof(uint32_t)) != 0;
}

void config_take(struct config *config, struct config *next, char *waiting, size_t size)
{
	size_t n = 0;

	waiting[0] = '\0';
	for (size_t i = 0; i < countof(fixed); i++) {
		if (!differs(fixed[i].kind, (const char *)config + fixed[i].offset,
			     (const char *)next + fixed[i].offset))
			continue;
		n += (size_t)snprintf(waiting + n, size - n, "%s%s", n ? ", " : "", fixed[i].key);
		if (n >= size)
			break;
	}
	take_live(config, next);
}
