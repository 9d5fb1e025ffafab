#include "plugin-fixture.h"

#include <fcntl.h>
#include <libgen.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "weir/base.h"

void plugin_write(const char *path, const char *text)
{
	char temporary[160];

	snprintf(temporary, sizeof(temporary), "%s.new", path);
	FILE *file = fopen(temporary, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(rename(temporary, path), 0);
}

static void built(char *out, size_t size, const char *name)
{
	char self[512];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_in_range(n, 1, sizeof(self) - 1);
	self[n] = '\0';
	snprintf(out, size, "%.400s/../%s", dirname(self), name);
}

void plugin_spawn(struct plugin *f)
{
	char program[512];

	built(program, sizeof(program), "bin/weir-device-plugin");
	f->pid = fork();
	assert_true(f->pid >= 0);
	if (f->pid == 0) {
		int log = open(f->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
		dup2(log, STDERR_FILENO);
		setenv("FAKE_NVML", f->gpus, 1);
		execl(program, program, "--config", f->config, (char *)NULL);
		_exit(127);
	}
}

int plugin_reap(struct plugin *f)
{
	int status;

	assert_int_equal(waitpid(f->pid, &status, 0), f->pid);
	f->pid = 0;
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

void plugin_write_config(struct plugin *f, const char *dir, const char *more)
{
	char text[2048], nvml[512];

	built(nvml, sizeof(nvml), "lib/libfake-nvml.so");
	snprintf(text, sizeof(text),
		 "pluginDir: %s\n"
		 "driver: {mount: never, nvml: '%s'}\n"
		 "%s",
		 dir, nvml, more);
	plugin_write(f->config, text);
}

int plugin_set_up(void **state)
{
	struct plugin *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	fake_kubelet_init(&f->kubelet);
	strcpy(f->state, "/tmp/weir-plugin-XXXXXX");
	assert_non_null(mkdtemp(f->state));
	snprintf(f->gpus, sizeof(f->gpus), "%s/gpus", f->state);
	snprintf(f->config, sizeof(f->config), "%s/config.yaml", f->state);
	snprintf(f->log, sizeof(f->log), "%s/log", f->state);
	plugin_write(f->gpus, GPU_A " 0 1024 ok\n" GPU_B " 1 1024 ok\n");
	plugin_write_config(f, f->kubelet.dir, "");
	*state = f;
	return 0;
}

int plugin_tear_down(void **state)
{
	struct plugin *f = *state;
	char command[128];

	if (f->pid) {
		kill(f->pid, SIGKILL);
		waitpid(f->pid, NULL, 0);
	}
	fake_kubelet_deinit(&f->kubelet);
	snprintf(command, sizeof(command), "rm -rf '%s'", f->state);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

bool plugin_has_stream(const struct fake_kubelet *kubelet)
{
	return kubelet->stream && kubelet->lists;
}

bool plugin_is_back(const struct fake_kubelet *kubelet)
{
	const struct plugin *f = container_of(kubelet, struct plugin, kubelet);

	return kubelet->registrations > f->before && kubelet->stream;
}

bool plugin_log_says(const struct fake_kubelet *kubelet)
{
	const struct plugin *f = container_of(kubelet, struct plugin, kubelet);
	char line[2048];
	bool found = false;
	FILE *file = fopen(f->log, "re");

	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file))
		found = strstr(line, f->expected_line);
	fclose(file);
	return found;
}

unsigned plugin_count_sockets(const struct plugin *f)
{
	char command[256], text[16] = "";

	snprintf(command, sizeof(command), "ls '%s' | grep -c '^weir-.*\\.sock$'", f->kubelet.dir);
	FILE *pipe = popen(command, "re");
	assert_non_null(pipe);
	assert_non_null(fgets(text, sizeof(text), pipe));
	pclose(pipe);
	return (unsigned)atoi(text);
}

void plugin_start(struct plugin *f)
{
	fake_kubelet_start(&f->kubelet);
	plugin_spawn(f);
	fake_kubelet_until(&f->kubelet, plugin_has_stream);
}
