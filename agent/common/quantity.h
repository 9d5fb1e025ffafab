/* Amounts of memory as Kubernetes writes them: 8Gi, 512Mi, 1.5G, 1000000000. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define QUANTITY_EXPECTED "an amount of memory from 2Mi to 1Pi, like 8Gi"

/* In bytes, fractions of them cut off. False: it is something else. */
bool quantity_parse(const char *text, uint64_t *bytes);
