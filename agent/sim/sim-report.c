/* Prints the result of a simulation. */
#include "sim/sim.h"

#include "config/config.h"

struct sums {
	double turnaround; /* ANTT: mean over clients of turnaround by work alone */
	double throughput; /* STP: sum over clients of their progress while they had work */
	uint64_t requests, dropped, late;
	unsigned measured;
};

static double ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static struct sums add_up(const struct sim_result *result)
{
	struct sums sums = {0};

	for (const struct sim_client *c = result->clients; c < result->clients + result->n; c++) {
		sums.requests += c->requests;
		sums.dropped += c->dropped;
		sums.late += c->late;
		sums.throughput += ratio(c->ran, c->busy);
		if (c->requests == 0)
			continue;
		sums.turnaround += ratio(c->turnaround, c->work);
		sums.measured++;
	}
	if (sums.measured)
		sums.turnaround /= sums.measured;
	return sums;
}

static void print_sums(FILE *out, const struct sim_result *result)
{
	struct sums sums = add_up(result);

	fprintf(out, "time %.3f s: busy %.2f %%, idle %.2f %%, lost %.2f %%",
		(double)result->time / 1e9, 100 * ratio(result->ran, result->time),
		100 * ratio(result->idle, result->time), 100 * ratio(result->wasted, result->time));
	if (result->shared)
		fprintf(out, ", shared %.2f %%", 100 * ratio(result->shared, result->time));
	fputc('\n', out);
	fprintf(out, "requests %llu, dropped %llu, late %llu; ANTT %.3f, STP %.3f\n",
		(unsigned long long)sums.requests, (unsigned long long)sums.dropped,
		(unsigned long long)sums.late, sums.turnaround, sums.throughput);
	fprintf(out, "switches %llu, evictions %llu, holds %llu\n",
		(unsigned long long)result->switches, (unsigned long long)result->evictions,
		(unsigned long long)result->holds);
}

void sim_print(FILE *out, const struct trace *trace, const struct sim_options *options,
	       const struct sim_result *result, size_t rows)
{
	fprintf(out, "policy %s\n", options->policy->name);
	print_sums(out, result);
	fprintf(out, "%-24s %-8s %5s %9s %10s %10s %10s %8s %s\n", "CLIENT", "LEVEL", "SHARE",
		"REQUESTS", "MEAN ms", "P99 ms", "STOOD ms", "GPU %", "IN WINDOWS %");
	for (size_t i = 0; i < result->n && i < rows; i++) {
		const struct trace_client *traits = &trace->clients[i];
		const struct sim_client *c = &result->clients[i];
		fprintf(out, "%-24s %-8s %5u %9llu %10.3f %10.3f %10.3f %8.3f", traits->name,
			config_level_name(traits->level), traits->share,
			(unsigned long long)c->requests,
			c->requests ? ms(c->turnaround / c->requests) : 0,
			ms(sim_quantile(c, 0.99)), ms(c->starved),
			100 * ratio(c->ran, result->time));
		if (c->share_min <= c->share_max)
			fprintf(out, " %.2f-%.2f", 100 * c->share_min, 100 * c->share_max);
		fputc('\n', out);
	}
	if (result->n > rows)
		fprintf(out, "and %zu clients more\n", result->n - rows);
}

static void print_client_json(FILE *out, const struct trace_client *traits,
			      const struct sim_client *c)
{
	fprintf(out,
		"{\"name\":\"%s\",\"level\":%u,\"share\":%u,\"requests\":%llu,\"dropped\":%llu,"
		"\"late\":%llu,\"workSeconds\":%.9f,\"turnaroundSeconds\":%.9f,"
		"\"waitSeconds\":%.9f,\"gpuSeconds\":%.9f,\"busySeconds\":%.9f,"
		"\"stoodSecondsMax\":%.9f,\"p50Seconds\":%.9f,\"p99Seconds\":%.9f",
		traits->name, traits->level, traits->share, (unsigned long long)c->requests,
		(unsigned long long)c->dropped, (unsigned long long)c->late, (double)c->work / 1e9,
		(double)c->turnaround / 1e9, (double)c->wait / 1e9, (double)c->ran / 1e9,
		(double)c->busy / 1e9, (double)c->starved / 1e9, (double)sim_quantile(c, 0.5) / 1e9,
		(double)sim_quantile(c, 0.99) / 1e9);
	if (c->share_min <= c->share_max)
		fprintf(out, ",\"shareMin\":%.6f,\"shareMax\":%.6f", c->share_min, c->share_max);
	fputc('}', out);
}

void sim_print_json(FILE *out, const struct trace *trace, const struct sim_options *options,
		    const struct sim_result *result)
{
	struct sums sums = add_up(result);

	fprintf(out,
		"{\"policy\":\"%s\",\"seconds\":%.9f,\"busySeconds\":%.9f,\"idleSeconds\":%.9f,"
		"\"lostSeconds\":%.9f,\"sharedSeconds\":%.9f,\"antt\":%.6f,\"stp\":%.6f,"
		"\"switches\":%llu,\"evictions\":%llu,\"holds\":%llu,\"clients\":[",
		options->policy->name, (double)result->time / 1e9, (double)result->ran / 1e9,
		(double)result->idle / 1e9, (double)result->wasted / 1e9,
		(double)result->shared / 1e9, sums.turnaround, sums.throughput,
		(unsigned long long)result->switches, (unsigned long long)result->evictions,
		(unsigned long long)result->holds);
	for (size_t i = 0; i < result->n; i++) {
		fputs(i ? "," : "", out);
		print_client_json(out, &trace->clients[i], &result->clients[i]);
	}
	fputs("]}\n", out);
}
