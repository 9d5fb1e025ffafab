/* The kernels that are tuned: connects the autotuner (autotune/README.md) to clients, the driver
 * and the compile service. A record for each long kernel and geometry of a client. */
#pragma once

#include "autotune/autotune.h"
#include "measure/sample.h"
#include "preempt/function.h"
#include "preempt/profile.h"

#define TUNED_KERNELS_MAX 2048

struct tuned_kernel {
	_Atomic uint64_t key; /* as in struct kernel_time; 0: free */
	struct client *_Atomic client;
	struct function *_Atomic function; /* NULL: not known yet */
	/* Worker. */
	struct geometry geometry;
	uint32_t unloads; /* kernel_unloads() before it was launched */
	uint64_t number;  /* of kernel and geometry, the same in all processes; 0: not known */
	struct autotuner tuner;
	struct profile_taught taught;
};

/* Reads the settings from the environment; before the first client. */
void tuning_init(void);

/* Launch path; @tuned may be NULL. */
struct launch_decision tuning_decide(struct tuned_kernel *tuned, const struct client *client,
				     uint64_t key, const struct autotune_launch *launch);

/* Worker: a sample was read. @crowded: others may have run meanwhile. */
void tuning_learn(struct client *client, const struct sample *sample, uint64_t ns, bool crowded);
/* Worker: the kernel is to be tuned and was not measured yet. */
bool tuning_is_unknown(const struct sampled *of);
/* Worker: a launch of a kernel that nobody knows waits for its forms (first-launch.h). */
void tuning_first(struct client *client, const struct sampled *of);
/* Launch path: how it would be launched; NULL: not in a form, or not yet. */
const struct launch_config *tuning_first_config(const struct client *client,
						const struct sampled *of);
/* Launch path: no form is to come, if there is no such configuration. */
bool tuning_first_is_settled(const struct sampled *of);
/* Worker: a launch has run for @ns and goes on. */
void tuning_runs(struct client *client, const struct sample *sample, uint64_t ns, bool crowded);

/* Worker: is there work that needs the driver? Then, with the context current: does it. */
bool tuning_pending(const struct client *client);
void tuning_work(struct client *client);

/* Worker: how many kernels the client launches now that are not settled. */
uint64_t tuning_count(const struct client *client);

/* The record that @config is in, which may be another kernel's by now. */
const struct tuned_kernel *tuning_of(const struct launch_config *config);

/* Any thread: the kernel's code is being unloaded. */
void tuning_code_gone(const struct function *function);

/* The client's context ends. */
void tuning_forget(struct client *client);

/* For tests: a record, free or not; NULL: no more. */
const struct tuned_kernel *tuning_at(size_t index);
