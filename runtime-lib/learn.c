#include "learn.h"

#include "choose.h"
#include "kernel.h"
#include "predict.h"

static void judge(struct client *client, const struct sampled *of, uint64_t ns)
{
	if (!of->predicted)
		return;
	client->worker.predictions++;
	client->worker.prediction_error += (uint64_t)(kernel_error(of->predicted, ns) * 1e6);
}

void learn_sample(void *data, const struct sample *sample, uint64_t ns)
{
	struct client *client = data;
	const struct sampled *of = &sample->of;

	if (atomic_load(&sample->flight) != SAMPLE_EVICTED) {
		judge(client, of, ns);
		kernel_learn(of->kernel, of->key, ns, predict_learn(sample, ns));
	}
	choose_learn(client, sample, ns);
}
