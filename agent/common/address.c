#include "common/address.h"

#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* getaddrinfo() accepts a number with garbage behind it. */
static bool is_port(const char *text)
{
	size_t n = strspn(text, "0123456789");

	return n > 0 && n <= 5 && !text[n] && strtoul(text, NULL, 10) <= UINT16_MAX;
}

bool address_parse(const char *text, struct sockaddr_storage *out, socklen_t *size)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
				 .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	const char *colon = strrchr(text, ':');
	char host[64];

	if (!colon || !is_port(colon + 1) || (size_t)(colon - text) >= sizeof(host))
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
