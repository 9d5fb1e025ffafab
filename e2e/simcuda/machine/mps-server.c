#include "simcuda/machine/mps-server.h"

#include "simcuda/machine/rm-client.h"

#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_MS 50 /* for dead clients */

static void tell(int news)
{
	if (write(news, "", 1) < 0)
		_exit(1); /* the daemon has gone */
}

/* False: without a machine, or where its resource manager cannot be had, it is a process that only
 * waits. */
static bool open_groups(struct machine *m, struct rm_client *rm, const char *pipes)
{
	uint32_t gpus[MACHINE_GPUS];
	char control[512];
	struct stat st;

	snprintf(control, sizeof(control), "%s/control", pipes);
	if (stat(control, &st) < 0 || machine_open(m, MACHINE_SERVER))
		return false;
	for (size_t i = 0, n = machine_visible(m, gpus); i < n; i++)
		if (!rm_client_open(rm, m, gpus[i]) || !rm_client_compute(rm, gpus[i]))
			return false;
	machine_server_open(m, st.st_dev, st.st_ino);
	return true;
}

static void obey(struct machine *m, int orders)
{
	uint32_t pid;

	if (read(orders, &pid, sizeof(pid)) != (ssize_t)sizeof(pid))
		_exit(0); /* the daemon has gone */
	if (m)
		machine_server_terminate(m, pid);
}

_Noreturn void mps_server_run(const char *pipes, int news, int orders)
{
	static struct machine machine;
	static struct rm_client rm = RM_CLIENT_INIT;
	bool open = open_groups(&machine, &rm, pipes);
	uint32_t faults = open ? machine_server_faults(&machine) : 0;

	tell(news);
	for (;;) {
		struct pollfd order = {.fd = orders, .events = POLLIN};

		if (poll(&order, 1, open ? LOOK_MS : -1) > 0)
			obey(open ? &machine : NULL, orders);
		uint32_t now = open ? machine_server_faults(&machine) : 0;
		if (now != faults)
			tell(news);
		faults = now;
	}
}
