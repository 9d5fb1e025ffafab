#include "library-hold.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "weir/base.h"
#include "weir/file.h"
#include "weir/log.h"

/* As install-runtime.sh names them. */
static const char *const names[] = {"libweir.so", "libweir-nvml.so", "ld.so.preload"};

/* While this open waits, it already counts as a reader: the lease cannot be renewed. */
static void *wait_for_lease(void *argument)
{
	cleanup(freep) char *path = argument;
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		log_error("%s: %s", path, strerror(errno));
	else
		log_info("%s: the lease has ended", path);
	return NULL; /* @fd stays open */
}

/* Signals are for the main thread. Takes @path. */
static void start_waiting(char *path)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int r = pthread_create(&thread, NULL, wait_for_lease, path);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r > 0) {
		log_error("%s: %s", path, strerror(r));
		free(path);
		return;
	}
	pthread_detach(thread);
}

/* 0 or a negative errno. The descriptor stays open. */
static int hold(const char *path)
{
	int fd = file_open(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW);

	if (fd != -EWOULDBLOCK)
		return fd < 0 ? fd : 0;
	log_warning("%s: a process has a lease on it; until it ends, programs in other containers "
		    "start late",
		    path);
	char *copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	start_waiting(copy);
	return 0;
}

static void hold_configured(const char *path)
{
	int r = path[0] ? hold(path) : 0;

	if (r < 0)
		log_warning("%s: %s; a container can take a lease on it, and delay programs in "
			    "other containers",
			    path, strerror(-r));
}

/* @dir has a folder for each version. */
static void hold_versions(const char *dir, const char *current)
{
	DIR *folder = opendir(dir);
	char path[4096];

	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		if (entry->d_name[0] == '.' || strcmp(entry->d_name, current) == 0)
			continue;
		for (size_t i = 0; i < countof(names); i++)
			if (snprintf(path, sizeof(path), "%s/%s/%s", dir, entry->d_name, names[i]) <
			    (int)sizeof(path))
				hold(path); /* may be missing: not every version has each file */
	}
	if (folder)
		closedir(folder);
}

/* Cuts @path, DIR/VERSION/FILE. */
static void hold_other_versions(char *path)
{
	char *file = strrchr(path, '/');

	if (!file)
		return;
	*file = '\0';
	char *version = strrchr(path, '/');
	if (!version || version == path)
		return;
	*version = '\0';
	hold_versions(path, version + 1);
}

void library_hold(const struct config *config)
{
	char path[4096];

	hold_configured(config->preload_path);
	hold_configured(config->library_path);
	hold_configured(config->nvml_path);
	if (snprintf(path, sizeof(path), "%s", config->preload_path) < (int)sizeof(path))
		hold_other_versions(path);
}
