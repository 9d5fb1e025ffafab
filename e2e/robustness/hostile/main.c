/* hostile SOCKET GPU ATTACK [SECONDS]: a hostile client.
 *
 * An attack says whether the agent withstood it. Run as root, it changes to the user that it needs.
 * With SECONDS it is a siege: it goes on for so long as whoever runs it, and begins again if it
 * cannot go on, as when the agent is restarted. Sieges say nothing about their success; `honest`
 * and `execs` beside them do. */
#include "robustness/hostile/siege.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define AGAIN_US     20000

struct attack {
	const char *name;
	void (*attack)(void); /* once; NULL: a siege only */
	void (*siege)(void);  /* NULL: the attack again and again, or none */
	bool as_root;         /* it forks and changes users itself */
};

static const struct attack attacks[] = {
	{"connections", attack_connections, NULL, true},
	{"flood", attack_flood, siege_flood, true},
	{"rights", attack_rights, NULL, false},
	{"garbage", attack_garbage, NULL, false},
	{"orphan", attack_orphan, NULL, false},
	{"words", attack_words, NULL, false},
	{"liar", attack_liar, NULL, true},
	{"socket", attack_socket, NULL, false},
	{"memory", attack_memory, siege_memory, true},
	{"lease", NULL, siege_lease, true},
	{"object", NULL, siege_object, true},
	{"http", NULL, siege_http, false},
	{"compile", NULL, siege_compile, false},
	{"accounts", NULL, siege_accounts, false},
	{"bits", NULL, siege_bits, false},
	{"forge", NULL, siege_forge, false},
	{"demoted", NULL, siege_demoted, false},
	{"honest", honest_once, honest_again, true},
	{"execs", NULL, honest_execs, true},
};

void siege_ready(void)
{
	static bool said;

	if (said)
		return;
	said = true;
	puts(SIEGE_READY);
	fflush(stdout);
}

bool siege_fork(void)
{
	pid_t child = fork();

	if (child < 0)
		cannot("fork");
	if (child == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return child == 0;
}

static void besiege(const struct attack *attack)
{
	if (attack->siege) {
		attack->siege();
		return;
	}
	for (;; siege_ready())
		attack->attack();
}

/* In a group of its own, so that all its processes can be ended. */
static pid_t start(const struct attack *attack)
{
	pid_t child = fork();

	if (child < 0)
		cannot("fork");
	if (child > 0)
		return child;
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	besiege(attack);
	exit(0);
}

/* The status of an honest one that fails; 0 otherwise. */
static int hold_out(const struct attack *attack, uint64_t seconds)
{
	uint64_t end = clock_ms() + seconds * 1000;
	bool honest = attack->siege == honest_again || attack->siege == honest_execs;

	while (clock_ms() < end) {
		pid_t child = start(attack);
		int status = 0;
		pid_t ended = 0;
		while (clock_ms() < end && ended == 0) {
			usleep(AGAIN_US);
			ended = waitpid(child, &status, WNOHANG);
		}
		kill(-child, SIGKILL);
		if (ended == 0)
			waitpid(child, NULL, 0);
		else if (honest)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc >= 4 && argc <= 5 && client_set_gpu(argv[2]) && i < COUNT(attacks);
	     i++) {
		if (strcmp(argv[3], attacks[i].name) != 0)
			continue;
		agent_socket = argv[1];
		if (argc == 5)
			return hold_out(&attacks[i], strtoull(argv[4], NULL, 10));
		if (!attacks[i].attack)
			break;
		if (!attacks[i].as_root)
			become(HOSTILE_UID);
		attacks[i].attack();
		return 0;
	}
	fputs("usage: hostile SOCKET GPU ATTACK [SECONDS]; attacks:", stdout);
	for (size_t i = 0; i < COUNT(attacks); i++)
		printf(" %s", attacks[i].name);
	puts("");
	return 2;
}
