/* Finding, creating and joining the machine. */
#include "simcuda/machine/file.h"

#include "weir/base.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define DEFAULT_FOLDER "/dev/shm/weir-sim"
#define PID_OFFSET     0x10000

bool machine_parse_size(const char *text, uint64_t *out)
{
	static const char units[] = "KMGT";
	char *end = NULL;
	uint64_t value, shift = 0;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno)
		return false;
	if (*end && strchr(units, *end)) {
		shift = 10u * (uint64_t)(strchr(units, *end) - units + 1);
		end++;
		if (*end == 'i')
			end++;
	}
	if (*end || value > UINT64_MAX >> shift)
		return false;
	*out = value << shift;
	return true;
}

static void set_number(uint32_t *field, const char *value, uint64_t min, uint64_t max)
{
	uint64_t n;

	if (machine_parse_size(value, &n) && n >= min && n <= max)
		*field = (uint32_t)n;
}

/* A value that makes no sense is ignored. */
static void set_config(struct machine_config *c, const char *key, const char *value)
{
	uint64_t bytes;

	if (!strcmp(key, "gpus"))
		set_number(&c->gpus, value, 1, MACHINE_GPUS);
	else if (!strcmp(key, "sms"))
		set_number(&c->sms, value, 1, MACHINE_SMS);
	else if (!strcmp(key, "sm_blocks"))
		set_number(&c->sm_blocks, value, 1, MACHINE_SMS);
	else if (!strcmp(key, "numa"))
		set_number(&c->numa, value, 0, MACHINE_GPUS);
	else if (!strcmp(key, "slices"))
		set_number(&c->slices, value, 0, 1);
	else if (!strcmp(key, "switch_us"))
		set_number(&c->switch_us, value, 0, 1000000);
	else if (!strcmp(key, "block_us"))
		set_number(&c->block_us, value, 0, 10000000);
	else if (!strcmp(key, "memory") && machine_parse_size(value, &bytes) && bytes >= 1 << 20)
		c->memory = bytes;
}

static void fclosep(FILE **file)
{
	if (*file)
		fclose(*file);
}

static void read_config(struct machine_config *c, const char *folder)
{
	static const char *const names[][2] = {
		{"WEIR_SIM_GPUS", "gpus"},           {"WEIR_SIM_SMS", "sms"},
		{"WEIR_SIM_NUMA", "numa"},           {"WEIR_SIM_MEMORY", "memory"},
		{"WEIR_SIM_BLOCK_US", "block_us"},   {"WEIR_SIM_SLICES", "slices"},
		{"WEIR_SIM_SWITCH_US", "switch_us"}, {"WEIR_SIM_SM_BLOCKS", "sm_blocks"}};
	char path[300], line[128], key[32], value[64];
	cleanup(fclosep) FILE *file = NULL;

	*c = (struct machine_config){
		.gpus = 1, .sms = 2, .sm_blocks = 1, .memory = 1ull << 30, .switch_us = 200};
	snprintf(path, sizeof(path), "%s/config", folder);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, " %31[a-z_] = %63s", key, value) == 2)
			set_config(c, key, value);
	for (size_t i = 0; i < countof(names); i++) {
		const char *wanted = getenv(names[i][0]);

		if (wanted)
			set_config(c, names[i][1], wanted);
	}
	if (machine_slots(c) > MACHINE_SMS)
		c->sm_blocks = MACHINE_SMS / c->sms;
}

/* A file gets its name only when everybody may open it, whatever the creator's umask is. */
static int make_shared(const char *path)
{
	char made[320];
	int fd;

	snprintf(made, sizeof(made), "%s.%d-%lx", path, (int)getpid(),
		 (unsigned long)pthread_self());
	fd = open(made, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	(void)fchmod(fd, 0666);
	int error = link(made, path) < 0 ? -errno : 0;
	unlink(made);
	close(fd);
	return error;
}

static int open_shared(const char *folder, const char *name)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		int r = make_shared(path);
		if (r && r != -EEXIST)
			return r;
		fd = open(path, O_RDWR | O_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}

/* Where `echo XID > gpu0/xid` goes. */
static void make_gpu_folders(const struct machine *m)
{
	char path[300];

	for (uint32_t g = 0; g < m->config.gpus; g++) {
		snprintf(path, sizeof(path), "%s/gpu%u", m->folder, g);
		if (mkdir(path, 0777) == 0)
			(void)chmod(path, 0777);
	}
}

static bool anybody_lives(const struct machine *m)
{
	struct flock all = {.l_type = F_WRLCK, .l_start = 0, .l_len = MACHINE_PROCESSES};

	return fcntl(m->lock_fd, F_OFD_GETLK, &all) < 0 || all.l_type != F_UNLCK;
}

/* Joining is done under flock(). A machine without a live process is created again with the
 * settings of the first process. */
static int map(struct machine *m, int fd)
{
	struct stat st;
	struct shared *s;

	if (fstat(fd, &st) < 0)
		return -errno;
	if ((size_t)st.st_size != sizeof(*s) && ftruncate(fd, sizeof(*s)) < 0)
		return -errno;
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED)
		return -errno;
	if (!anybody_lives(m) || s->magic != SHARED_MAGIC || s->size != sizeof(*s)) {
		/* Most of it stays without pages. */
		if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, sizeof(*s)) < 0)
			memset(s, 0, sizeof(*s));
		read_config(&s->config, m->folder);
		s->size = sizeof(*s);
		s->magic = SHARED_MAGIC;
	}
	m->shared = s;
	m->config = s->config;
	return 0;
}

static int join(struct machine *m, enum machine_role role)
{
	for (uint32_t i = 0; i < MACHINE_PROCESSES; i++) {
		struct flock name = {.l_type = F_WRLCK, .l_start = PID_OFFSET + i, .l_len = 1};
		struct shared_process *p = &m->shared->processes[i];

		if (!shared_claim(m, i))
			continue;
		shared_lock(m);
		shared_forget(m->shared, i);
		p->joined = p->generation;
		p->pid = (uint32_t)getpid();
		p->role = role;
		p->slots = 0;
		shared_unlock(m);
		(void)fcntl(m->pid_fd, F_SETLK, &name); /* only NVML's list of processes needs it */
		return 0;
	}
	return MACHINE_FULL;
}

int machine_open(struct machine *m, enum machine_role role)
{
	const char *folder = getenv("WEIR_SIM_DIR");
	cleanup(closep) int fd = -1;
	int r;

	*m = (struct machine){.lock_fd = -1, .pid_fd = -1};
	if (!folder || !*folder)
		folder = DEFAULT_FOLDER;
	if (strlen(folder) >= sizeof(m->folder))
		return -ENAMETOOLONG;
	memcpy(m->folder, folder, strlen(folder) + 1);
	if (mkdir(m->folder, 0777) == 0)
		(void)chmod(m->folder, 01777);

	fd = open_shared(m->folder, "machine");
	m->lock_fd = open_shared(m->folder, "lock");
	m->pid_fd = open_shared(m->folder, "pids");
	r = fd < 0 ? fd : m->lock_fd < 0 ? m->lock_fd : m->pid_fd < 0 ? m->pid_fd : 0;
	if (!r && flock(fd, LOCK_EX) < 0)
		r = -errno;
	if (!r)
		r = map(m, fd);
	if (!r)
		r = join(m, role);
	if (!r)
		make_gpu_folders(m);
	(void)flock(fd, LOCK_UN); /* the mapping keeps the file open, so closing is not enough */
	if (r)
		machine_close(m);
	return r;
}

void machine_forget(struct machine *m)
{
	closep(&m->lock_fd);
	closep(&m->pid_fd);
	m->lock_fd = m->pid_fd = -1;
}

void machine_close(struct machine *m)
{
	machine_forget(m);
	if (m->shared)
		munmap(m->shared, sizeof(*m->shared));
	m->shared = NULL;
}
