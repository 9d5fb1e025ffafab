/* CPU time of a cached answer on the agent's thread, by the size of the client's image. Prints one
 * line of JSON for each size. */
#include "compile-fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "weir/base.h"
#include "weir/log.h"

#define ROUNDS 200

static const char kernel[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
			     ".visible .entry k()\n{\n\tret;\n}\n";

static double microseconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* The kernel, with a comment that makes it that large. */
static char *make_image(size_t size)
{
	char *image = malloc(size);

	if (!image)
		abort();
	memset(image, '/', size);
	memcpy(image, kernel, sizeof(kernel) - 1);
	image[size - 1] = '\n';
	return image;
}

static void measure(struct loop *loop, struct compile *compile, size_t size)
{
	struct requester requester;
	char *image = make_image(size);
	double cpu = 0, wall = 0;

	fixture_init(&requester);

	for (unsigned i = 0; i <= ROUNDS; i++) {
		int fd = fixture_file("k", image, size, 90, 1u << WEIR_PERSISTENT);
		double cpu_began = microseconds(CLOCK_PROCESS_CPUTIME_ID);
		double began = microseconds(CLOCK_MONOTONIC);

		compile_ask(compile, &requester.client, i, fd);
		fixture_wait(loop, &requester, i + 1);
		/* The first answer was compiled. */
		if (i) {
			cpu += microseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_began;
			wall += microseconds(CLOCK_MONOTONIC) - began;
		}
	}
	printf("{\"image_bytes\": %zu, \"cpu_us\": %.1f, \"wall_us\": %.1f, \"hits\": %llu}\n",
	       size, cpu / ROUNDS, wall / ROUNDS, (unsigned long long)compile->counters.hits);
	compile_leave(&requester.client);
	closep(&requester.fd);
	free(image);
}

int main(void)
{
	static const size_t sizes[] = {1000, 10000, 100000, 1000000, 10000000};
	struct config_compile config = {.mode = COMPILE_PTX,
					.program = (char *)fixture_program(),
					.helpers = 1,
					.memory_mib = 1024,
					.seconds = 30,
					.cache_mib = 64};
	char folder[] = "/tmp/weir-bench-XXXXXX", command[128];
	struct compile compile;
	struct loop loop;

	log_set_level(LOG_ERROR);
	if (!mkdtemp(folder) || loop_init(&loop) < 0 ||
	    compile_init(&compile, &loop, &config, folder, false) < 0)
		return 1;
	for (size_t i = 0; i < countof(sizes); i++)
		measure(&loop, &compile, sizes[i]);
	compile_deinit(&compile);
	loop_deinit(&loop);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command) != 0;
}
