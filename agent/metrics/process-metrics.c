#include "metrics/process-metrics.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "metrics/metrics.h"
#include "common/process.h"

#include "weir/base.h"

static void write_number(FILE *out, const char *name, const char *type, const char *help,
			 double value)
{
	metrics_head(out, name, type, help);
	fprintf(out, "%s %.17g\n", name, value);
}

/* How many descriptors are open; the one that looks is not counted. */
static bool count_descriptors(unsigned *n)
{
	DIR *folder = opendir("/proc/self/fd");

	if (!folder)
		return false;
	*n = 0;
	for (struct dirent *entry; (entry = readdir(folder));)
		*n += entry->d_name[0] != '.';
	closedir(folder);
	*n -= 1;
	return true;
}

static bool read_pages(long *resident)
{
	FILE *file = fopen("/proc/self/statm", "re");
	bool good = file && fscanf(file, "%*d %ld", resident) == 1;

	if (file)
		fclose(file);
	return good;
}

/* In seconds since 1970; one number for good, though the clock may be set, and each reading of two
 * clocks differs a little. */
static double start_time(void)
{
	static double start;
	struct timespec now, up;

	if (start > 0)
		return start;
	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_BOOTTIME, &up);
	start = (double)(now.tv_sec - up.tv_sec) + (double)(now.tv_nsec - up.tv_nsec) / 1e9 +
		(double)process_started(getpid()) / (double)sysconf(_SC_CLK_TCK);
	return start;
}

void process_metrics_write(FILE *out)
{
	struct rlimit limit;
	struct timespec cpu;
	unsigned open;
	long pages;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0)
		write_number(out, "process_cpu_seconds_total", "counter",
			     "CPU time of the agent, without weir-compile.",
			     (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9);
	if (read_pages(&pages))
		write_number(out, "process_resident_memory_bytes", "gauge", "Memory of the agent.",
			     (double)pages * (double)sysconf(_SC_PAGESIZE));
	if (count_descriptors(&open))
		write_number(out, "process_open_fds", "gauge", "Open descriptors.", open);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		write_number(out, "process_max_fds", "gauge", "Descriptors that it may open.",
			     (double)limit.rlim_cur);
	write_number(out, "process_start_time_seconds", "gauge",
		     "When it began, in seconds since 1970.", start_time());
}
