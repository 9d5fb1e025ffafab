#include "measure/kernel.h"

#include "measure/predict-ridge.h"

#include "weir/log.h"

#define ENTRIES          8192u /* a power of two */
#define WAYS             4u
#define FIRST_SAMPLES    4u
#define PROFILED_SAMPLES 2u
#define SAMPLE_EVERY     128u
#define FELT_EVERY       512u /* of short kernels, which the events disturb */
#define WANTED_EVERY     16u
#define VARYING          0.01 /* variance of errors of 10 % */
#define BETTER           4    /* times less variance */
#define ERROR_MAX        10.0
/* Longer samples in a row that are not believed; the latter if one is less than twice the mean. */
#define LONGER_MOST   8u
#define LITTLE_LONGER 32u

static struct kernel_time table[ENTRIES];
_Atomic uint32_t code_unloads;

/* Each bit of the result depends on all bits of both. */
static uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t pair(unsigned high, unsigned low)
{
	return (uint64_t)high << 32 | low;
}

/* Folded multiplications as in wyhash (Wang Yi, public domain), two of them independent. The
 * constants are the hexadecimal digits of pi. */
launch_path uint64_t kernel_key(const struct geometry *geometry)
{
	const unsigned *grid = geometry->grid, *block = geometry->block;
	uint64_t function = (uint64_t)(uintptr_t)geometry->function;
	uint64_t first =
		fold(function ^ 0x243f6a8885a308d3u, pair(grid[0], grid[1]) ^ 0x13198a2e03707344u);
	uint64_t second = fold(pair(grid[2], block[0]) ^ 0xa4093822299f31d0u,
			       pair(block[1], block[2]) ^ 0x082efa98ec4e6c89u);
	uint64_t key =
		fold(first ^ geometry->shared ^ 0x452821e638d01377u, second ^ 0xbe5466cf34e90c6cu);

	return key ? key : 1;
}

/* Overwrites an entry; readers in between see a kernel of unknown time. */
static void claim(struct kernel_time *entry, uint64_t key)
{
	store_relaxed(&entry->mean, 0);
	store_relaxed(&entry->variance, 0);
	store_relaxed(&entry->sizes_variance, 0);
	store_relaxed(&entry->eviction, 0);
	store_relaxed(&entry->varies, 0);
	store_relaxed(&entry->samples, 0);
	store_relaxed(&entry->longer, 0);
	store_relaxed(&entry->launches, 0);
	store_relaxed(&entry->tuned, NULL);
	store_release(&entry->key, key);
}

launch_path struct kernel_time *kernel_find(uint64_t key)
{
	struct kernel_time *set = &table[key & (ENTRIES - WAYS)];
	struct kernel_time *victim = set;

	for (size_t i = 0; i < WAYS; i++) {
		uint64_t found = load_acquire(&set[i].key);
		if (found == key)
			return &set[i];
		if (!found) {
			victim = &set[i];
			break;
		}
		if (set[i].launches < victim->launches)
			victim = &set[i];
	}
	claim(victim, key);
	return victim;
}

/* A remainder by a constant takes no division. */
static bool is_turn(uint32_t n, bool wanted, bool felt)
{
	return (wanted ? n % WANTED_EVERY : felt ? n % FELT_EVERY : n % SAMPLE_EVERY) == 0;
}

launch_path bool kernel_wants_sample(struct kernel_time *kernel, bool leaves)
{
	bool wanted = kernel_varies(kernel) || (leaves && !load_relaxed(&kernel->eviction));
	/* Not atomic as a whole: a sample more or less does no harm. */
	uint32_t n = load_relaxed(&kernel->launches) + 1;
	uint64_t mean = kernel_mean(kernel);

	store_relaxed(&kernel->launches, n);
	return n <= FIRST_SAMPLES || is_turn(n, wanted, mean && mean < KERNEL_FELT);
}

void kernel_is_profiled(struct kernel_time *kernel, uint64_t key, uint64_t ns)
{
	const uint32_t skipped = FIRST_SAMPLES - PROFILED_SAMPLES;

	if (atomic_load(&kernel->key) != key)
		return;
	if (load_relaxed(&kernel->launches) < skipped)
		store_relaxed(&kernel->launches, skipped);
	if (!atomic_load(&kernel->mean))
		atomic_store(&kernel->mean, ns);
}

void kernel_learn_eviction(struct kernel_time *kernel, uint64_t key, uint64_t ns)
{
	uint64_t mean = atomic_load(&kernel->eviction);

	if (atomic_load(&kernel->key) != key)
		return;
	/* As for the mean, shorter values count for more. */
	mean = (uint64_t)ridge_mean((double)mean, (double)ns);
	atomic_store(&kernel->eviction, mean ? mean : 1);
}

double kernel_error(uint64_t predicted, uint64_t ns)
{
	double off = predicted > ns ? (double)(predicted - ns) : (double)(ns - predicted);
	double error = off / (double)(ns ? ns : 1);

	return error < ERROR_MAX ? error : ERROR_MAX;
}

static double learn_variance(_Atomic float *variance, double error)
{
	double now = (double)atomic_load(variance);

	now += (error * error - now) / 8;
	atomic_store(variance, (float)now);
	return now;
}

/* Without a prediction by the regression the mean counts as its prediction. */
static void compare(struct kernel_time *kernel, uint64_t mean, uint64_t ns, uint64_t by_sizes)
{
	double of_mean = learn_variance(&kernel->variance, kernel_error(mean, ns));
	double of_sizes = learn_variance(&kernel->sizes_variance,
					 kernel_error(by_sizes ? by_sizes : mean, ns));

	atomic_store(&kernel->varies, by_sizes && of_mean > VARYING && of_sizes * BETTER < of_mean);
}

/* Others lengthened most samples of the row, so the least is the best. 0: the row is too short. */
static uint64_t least_of_many(struct kernel_time *kernel, uint64_t mean, uint64_t ns)
{
	uint32_t n = atomic_load(&kernel->longer);
	uint64_t least = n ? atomic_load(&kernel->least) : ns;

	least = smaller(ns, least);
	bool enough = n >= (least < 2 * mean ? LITTLE_LONGER : LONGER_MOST);
	atomic_store(&kernel->least, least);
	atomic_store(&kernel->longer, enough ? 0 : n + 1);
	return enough ? least : 0;
}

/* ns; 0: none was measured. */
static uint64_t measured_mean(const struct kernel_time *kernel)
{
	return kernel_is_measured(kernel) ? atomic_load(&kernel->mean) : 0;
}

uint64_t kernel_believe(struct kernel_time *kernel, uint64_t key, uint64_t ns,
			enum kernel_crowd crowd)
{
	uint64_t mean = measured_mean(kernel);

	if (atomic_load(&kernel->key) != key)
		return 0;
	if (crowd == KERNEL_SLICED && mean && ns > mean)
		return 0;
	if (crowd && mean && ns > mean)
		return least_of_many(kernel, mean, ns);
	atomic_store(&kernel->longer, 0);
	return ns;
}

/* Others only lengthen a kernel: a crowded sample that is shorter by a sixteenth replaces the mean.
 */
static uint64_t mean_with(uint64_t mean, uint64_t ns, enum kernel_crowd crowd)
{
	uint64_t next = crowd && ns < mean - mean / 16
				? ns
				: (uint64_t)ridge_mean((double)mean, (double)ns);

	return next ? next : 1;
}

void kernel_learn(struct kernel_time *kernel, uint64_t key, uint64_t ns, uint64_t by_sizes,
		  enum kernel_crowd crowd)
{
	uint64_t mean = measured_mean(kernel);

	if (atomic_load(&kernel->key) != key)
		return;
	if (mean)
		compare(kernel, mean, ns, by_sizes);
	mean = mean_with(mean, ns, crowd);
	atomic_store(&kernel->mean, mean);
	if (atomic_fetch_add(&kernel->samples, 1) + 1 == FIRST_SAMPLES)
		log_debug("kernel %016llx: predicted %llu us", (unsigned long long)key,
			  (unsigned long long)mean / 1000);
}

void kernel_at_least(struct kernel_time *kernel, uint64_t key, uint64_t ns)
{
	uint64_t mean = atomic_load(&kernel->mean);
	uint64_t believed = atomic_load(&kernel->samples) ? 2 * mean : mean;

	if (atomic_load(&kernel->key) == key && believed < ns)
		atomic_store(&kernel->mean, ns);
}
