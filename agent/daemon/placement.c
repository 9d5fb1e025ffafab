#include "daemon/placement.h"

#include <string.h>

#include "common/metric.h"
#include "config/config.h"
#include "kubernetes/pods.h"

#include "weir/base.h"
#include "weir/log.h"
#include "weir/yaml.h"

static bool is_alive(void *userdata, const char *uid)
{
	struct placement *placement = userdata;
	const struct pod *pod = pods_find(placement->pods, uid);

	if (pod)
		return pod->phase == POD_ALIVE;
	bool may_be_new = loop_now() - placement->changed_at < PLACEMENT_NEW_POD_NS;
	placement->awaits |= may_be_new;
	return may_be_new;
}

static int load(struct placement *placement, struct checkpoint *out)
{
	const struct config_kubernetes *config = &placement->config->kubernetes;
	cleanup(freep) char *text = NULL;
	char message[512] = "";
	size_t size;
	int r = yaml_load_file(config->checkpoint, CHECKPOINT_FILE_MAX, &text, &size, message,
			       sizeof(message));

	if (r == 0)
		r = checkpoint_parse(out, text, size, config->names.share, is_alive, placement);
	if (r < 0)
		log_limited(LOG_WARNING, 3600, "%s: free shares are not known: %s",
			    config->checkpoint, *message ? message : strerror(-r));
	return r;
}

/* "40-100-0": a label takes no commas. Cut where a label ends. */
static void format_free(char *out, size_t size, const struct checkpoint *free)
{
	size_t at = 0;

	*out = '\0';
	for (size_t i = 0; i < free->n && at + 5 < size; i++)
		at += (size_t)snprintf(out + at, size - at, at ? "-%u" : "%u",
				       checkpoint_free(&free->gpus[i]));
}

static void publish(struct placement *placement)
{
	char largest[16], gpus[16], all[LABELS_VALUE_MAX];

	snprintf(largest, sizeof(largest), "%u", checkpoint_largest_free(&placement->free));
	snprintf(gpus, sizeof(gpus), "%u", checkpoint_free_gpus(&placement->free));
	format_free(all, sizeof(all), &placement->free);
	labels_set(&placement->own, OWN_LABEL_LARGEST_FREE, largest);
	labels_set(&placement->own, OWN_LABEL_FREE_GPUS, gpus);
	labels_set(placement->node, LABEL_LARGEST_FREE, largest);
	labels_set(placement->node, LABEL_FREE_GPUS, gpus);
	labels_set(placement->node, LABEL_FREE, all);
}

void placement_look(struct placement *placement)
{
	struct checkpoint next;

	/* Before the first list every pod would count as deleted. */
	if (!placement->watch.loop || !(placement->known || pods_connected(placement->pods)))
		return;
	placement->awaits = false;
	if (load(placement, &next) < 0)
		return;
	placement->free = next;
	placement->known = true;
	publish(placement);
	waiting_look(&placement->waiting, &placement->free, loop_now());
	if (placement->awaits)
		loop_timer_set(&placement->again, PLACEMENT_NEW_POD_NS, 0);
}

static void changed(struct file_watch *watch)
{
	struct placement *placement = container_of(watch, struct placement, watch);

	placement->changed_at = loop_now();
	placement_look(placement);
}

static void again(struct loop_timer *timer)
{
	placement_look(container_of(timer, struct placement, again));
}

static void look_at_waiting(struct loop_timer *timer)
{
	placement_look(container_of(timer, struct placement, waiting.timer));
}

static int init_own_labels(struct placement *placement, struct loop *loop, struct api *api)
{
	const char *namespace_ = getenv("POD_NAMESPACE"), *pod = getenv("POD_NAME");

	if (!api || !namespace_ || !pod || !*namespace_ || !*pod)
		return 0;
	return labels_init_own(&placement->own, loop, api, namespace_, pod);
}

int placement_init(struct placement *placement, struct loop *loop, struct api *api,
		   struct events *events)
{
	const char *path = placement->config->kubernetes.checkpoint;
	int r;

	if (!placement->pods || !*path)
		return 0;
	placement->waiting =
		(struct waiting){.pods = placement->pods, .api = api, .events = events};
	r = init_own_labels(placement, loop, api);
	if (r == 0)
		r = waiting_init(&placement->waiting, loop, look_at_waiting);
	if (r == 0)
		r = loop_timer_init(&placement->again, loop, again);
	if (r == 0)
		r = file_watch_init(&placement->watch, loop, path, changed);
	return r;
}

void placement_deinit(struct placement *placement)
{
	file_watch_deinit(&placement->watch);
	loop_timer_deinit(&placement->again);
	waiting_deinit(&placement->waiting);
	labels_deinit(&placement->own);
}

void placement_metrics(FILE *out, const struct placement *placement)
{
	if (!placement->known)
		return;
	metric_head(out, "weir_gpu_free_shares", "Shares of the GPU that a pod could get.");
	for (size_t i = 0; i < placement->free.n; i++) {
		fputs("weir_gpu_free_shares{", out);
		metric_label(out, "gpu", placement->free.gpus[i].id);
		fprintf(out, "} %u\n", checkpoint_free(&placement->free.gpus[i]));
	}
	waiting_metrics(out, &placement->waiting);
}

void placement_explain(FILE *out, const struct placement *placement, const struct pod *pod)
{
	char all[LABELS_VALUE_MAX];

	if (!placement->known)
		return;
	format_free(all, sizeof(all), &placement->free);
	fprintf(out,
		"this node has free shares by GPU: %s; the largest part that fits: %u; whole GPUs: "
		"%u\n",
		all, checkpoint_largest_free(&placement->free),
		checkpoint_free_gpus(&placement->free));
	if (waiting_find(&placement->waiting, pod))
		fprintf(out, "no GPU has room for it; %s\n",
			*pod->owner.uid ? "it is replaced when one has"
					: "it has no controller: delete it and create it again");
}
