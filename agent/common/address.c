#include "common/address.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "weir/units.h"

bool address_parse(const char *text, struct sockaddr_storage *out, socklen_t *size)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
				 .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	const char *colon = strrchr(text, ':');
	char host[64];
	uint64_t port;

	/* getaddrinfo() accepts a number with garbage behind it. */
	if (!colon || !number_parse(colon + 1, 0, UINT16_MAX, &port) ||
	    (size_t)(colon - text) >= sizeof(host))
		return false;
	snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);

	char *name = host;
	size_t n = strlen(host);
	if (n > 1 && host[0] == '[' && host[n - 1] == ']') {
		host[n - 1] = '\0';
		name++;
	} else if (strchr(host, ':')) {
		return false;
	}
	if (!*name || getaddrinfo(name, colon + 1, &hints, &found) != 0)
		return false;
	memcpy(out, found->ai_addr, found->ai_addrlen);
	*size = found->ai_addrlen;
	freeaddrinfo(found);
	return true;
}
