/* hostile SOCKET GPU ATTACK: a hostile client. Run as root, it changes to the user that an attack
 * needs. */
#include "robustness/hostile/client.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	void (*attack)(void);
	bool as_root; /* it forks and changes users itself */
} attacks[] = {
	{"connections", attack_connections, true},
	{"flood", attack_flood, true},
	{"rights", attack_rights, false},
	{"garbage", attack_garbage, false},
	{"orphan", attack_orphan, false},
	{"words", attack_words, false},
	{"liar", attack_liar, true},
	{"socket", attack_socket, false},
};

int main(int argc, char **argv)
{
	for (size_t i = 0;
	     argc == 4 && client_set_gpu(argv[2]) && i < sizeof(attacks) / sizeof(attacks[0]);
	     i++) {
		if (strcmp(argv[3], attacks[i].name) != 0)
			continue;
		agent_socket = argv[1];
		if (!attacks[i].as_root)
			become(HOSTILE_UID);
		attacks[i].attack();
		return 0;
	}
	puts("usage: hostile SOCKET GPU connections|flood|rights|garbage|orphan|words|liar|socket");
	return 2;
}
