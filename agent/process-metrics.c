#include "process-metrics.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "metrics.h"

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

/* In seconds since 1970, from the ticks since boot that field 22 of stat says. */
static bool read_start(double *start)
{
	char text[1024];
	struct timespec now, up;
	FILE *file = fopen("/proc/self/stat", "re");
	size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

	if (file)
		fclose(file);
	text[n] = '\0';
	const char *at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return false;
	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_BOOTTIME, &up);
	*start = (double)(now.tv_sec - up.tv_sec) + (double)(now.tv_nsec - up.tv_nsec) / 1e9 +
		 strtod(at, NULL) / (double)sysconf(_SC_CLK_TCK);
	return true;
}

void process_metrics_write(FILE *out)
{
	struct rlimit limit;
	struct timespec cpu;
	unsigned open;
	double start;
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
	if (read_start(&start))
		write_number(out, "process_start_time_seconds", "gauge",
			     "When it began, in seconds since 1970.", start);
}
