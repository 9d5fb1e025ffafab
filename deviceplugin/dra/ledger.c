#include "dra/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "config.h"
#include "weir/base.h"
#include "weir/error.h"
#include "weir/file.h"
#include "weir/log.h"

/* Without fsync(): the file only has to survive this process. After a crash of the node all
 * containers are gone, and the kubelet prepares their claims again. */
static int write_file(const char *path, const char *text)
{
	cleanup(freep) char *temporary = NULL;
	size_t size = strlen(text);

	if (asprintf(&temporary, "%s.new", path) < 0) {
		temporary = NULL;
		return error_origin(-ENOMEM);
	}
	unlink(temporary);
	cleanup(closep) int fd =
		open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	errno = 0;
	if (write(fd, text, size) == (ssize_t)size && rename(temporary, path) == 0)
		return 0;
	int r = errno ? -errno : -EIO;
	unlink(temporary);
	return r;
}

static int save(const struct ledger *ledger)
{
	cleanup(freep) char *text = claims_format(&ledger->claims);

	int r = text ? write_file(ledger->path, text) : -ENOMEM;
	if (r < 0)
		log_limited(LOG_ERROR, 10, "%s: %s", ledger->path, strerror(-r));
	return r;
}

static void load(struct ledger *ledger)
{
	cleanup(closep) int fd = file_open(AT_FDCWD, ledger->path, O_RDONLY);
	size_t size;
	cleanup(freep) char *text = file_load(fd, CLAIMS_FILE_MAX, &size);

	if (fd == -ENOENT)
		return;
	if (!text || claims_parse(&ledger->claims, text, size) < 0)
		log_error("%s: not the claims of a node; starting without", ledger->path);
	else
		log_info("%zu claims are prepared", ledger->claims.n);
}

int ledger_init(struct ledger *ledger, const struct config *config)
{
	*ledger = (struct ledger){0};
	if (asprintf(&ledger->path, "%s/claims.json", config->dra.state_dir) < 0) {
		ledger->path = NULL;
		return error_origin(-ENOMEM);
	}
	if (mkdir(config->dra.state_dir, 0755) < 0 && errno != EEXIST)
		log_warning("%s: %s", config->dra.state_dir, strerror(errno));
	load(ledger);
	return 0;
}

void ledger_deinit(struct ledger *ledger)
{
	claims_deinit(&ledger->claims);
	free(ledger->path);
	ledger->path = NULL;
}

int ledger_add(struct ledger *ledger, struct claim *claim)
{
	char uid[sizeof(claim->uid)];

	memcpy(uid, claim->uid, sizeof(uid));
	int r = claims_add(&ledger->claims, claim);
	if (r == 0)
		r = save(ledger);
	if (r < 0)
		claims_remove(&ledger->claims, uid);
	return r;
}

int ledger_remove(struct ledger *ledger, const char *uid)
{
	const struct claim *held = claims_find(&ledger->claims, uid);

	if (!held)
		return 0;
	struct claim *copy = malloc(sizeof(*copy));
	if (!copy)
		return error_origin(-ENOMEM);
	*copy = *held;
	claims_remove(&ledger->claims, uid);
	int r = save(ledger);
	if (r < 0)
		claims_add(&ledger->claims, copy);
	else
		free(copy);
	return r;
}
