#include "measure/sample.h"

struct sampler sampler_table[CLIENTS_MAX];

void sampler_init(struct sampler *sampler)
{
	uint32_t free = 0;

	for (unsigned i = 0; i < SAMPLES; i++) {
		struct sample *sample = &sampler->samples[i];
		CUevent *events[] = {&sample->start, &sample->end, &sample->away, &sample->back,
				     &sample->done};
		for (size_t e = 0; e < countof(events); e++) {
			if (real(cuEventCreate)(events[e], CU_EVENT_DEFAULT) != CUDA_SUCCESS)
				goto out;
		}
		free |= 1u << i;
	}
out:
	/* Some of the former context may not have been read. */
	atomic_store(&sampler->armed, 0);
	atomic_store(&sampler->free, free);
}

static void give_back(struct sampler *sampler, const struct sample *sample)
{
	atomic_fetch_or(&sampler->free, 1u << (sample - sampler->samples));
}

struct sample *sample_begin(struct sampler *sampler, CUstream stream)
{
	uint32_t free = load_relaxed(&sampler->free);

	do {
		if (!free)
			return NULL;
	} while (!atomic_compare_exchange_weak(&sampler->free, &free, free & (free - 1)));

	struct sample *sample = &sampler->samples[__builtin_ctz(free)];
	sample->begun = sample->sliced = sample->bounded = false;
	sample->parts = sample->early = false;
	sample->waited = sample->open = sample->seen = sample->ran = 0;
	store_relaxed(&sample->flight, SAMPLE_PLAIN);
	if (real(cuEventRecord)(sample->start, stream) != CUDA_SUCCESS) {
		give_back(sampler, sample);
		return NULL;
	}
	return sample;
}

void sample_describe(struct sample *sample, const struct sampled *of)
{
	sample->of = *of;
	sample->disturbed = of->held;
}

void sample_end(struct sampler *sampler, struct sample *sample, CUstream stream, bool launched)
{
	if (!sample)
		return;
	if (launched && real(cuEventRecord)(sample->end, stream) == CUDA_SUCCESS)
		atomic_fetch_or(&sampler->armed, 1u << (sample - sampler->samples));
	else
		give_back(sampler, sample);
}

uint64_t sample_ran(const struct sample *sample)
{
	float before, after;

	if (real(cuEventElapsedTime)(&before, sample->start, sample->away) != CUDA_SUCCESS ||
	    real(cuEventElapsedTime)(&after, sample->back, sample->done) != CUDA_SUCCESS ||
	    before < 0 || after < 0)
		return 0;
	return (uint64_t)(((double)before + (double)after) * 1e6);
}

uint64_t sample_first(const struct sample *sample)
{
	float ms;

	if (!sample->parts || !sample->chain || atomic_load(&sample->flight) != SAMPLE_CLEAN ||
	    real(cuEventElapsedTime)(&ms, sample->start, sample->away) != CUDA_SUCCESS || ms < 0)
		return 0;
	return (uint64_t)((double)ms * 1e6);
}

/* Counts from when gates were last seen closed: before, it may have been away, or behind others. */
static void watch(struct sample *sample, const struct sample_reader *reader)
{
	sample->open = reader->now;
	sample->disturbed |= reader->held;
	if (!sample->begun)
		sample->begun = real(cuEventQuery)(sample->start) == CUDA_SUCCESS;
	if (!sample->begun)
		sample->waited = reader->now;
	if (reader->held || !sample->begun) {
		sample->seen = sample->ran = 0;
		return;
	}
	if (sample->seen)
		sample->ran += reader->now - sample->seen;
	sample->seen = reader->now;
	if (sample->ran)
		reader->runs(reader->data, sample, sample->ran);
}

bool sampler_read(struct sampler *sampler, const struct sample_reader *reader)
{
	uint32_t armed = atomic_load(&sampler->armed);

	for (uint32_t left = armed; left; left &= left - 1) {
		struct sample *sample = &sampler->samples[__builtin_ctz(left)];
		CUresult result = real(cuEventQuery)(sample->end);
		float ms;

		if (result == CUDA_ERROR_NOT_READY) {
			watch(sample, reader);
			continue;
		}
		if (result == CUDA_SUCCESS && atomic_load(&sample->flight) == SAMPLE_FLYING)
			continue;
		if (result == CUDA_SUCCESS &&
		    real(cuEventElapsedTime)(&ms, sample->start, sample->end) == CUDA_SUCCESS)
			reader->ended(reader->data, sample, ms > 0 ? (uint64_t)(ms * 1e6) : 0);
		atomic_fetch_and(&sampler->armed, ~(1u << (sample - sampler->samples)));
		give_back(sampler, sample);
	}
	return atomic_load(&sampler->armed) != 0;
}
