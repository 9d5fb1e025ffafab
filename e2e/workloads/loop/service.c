#include "service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

/* A number that both a client and its check can tell from the place of a request. */
static uint32_t mixed(uint64_t x)
{
	x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
	return (uint32_t)(x >> 32);
}

static uint64_t place(const struct conversation *conversation)
{
	return (uint64_t)conversation->number << 40 | conversation->count;
}

/* echo */

static size_t echo_bytes(uint32_t size)
{
	return size;
}

static void echo_answer(void *state, uint32_t size, const void *request, void *reply)
{
	(void)state;
	memcpy(reply, request, size);
}

static void echo_make(struct conversation *conversation, void *request)
{
	uint8_t *bytes = request;
	uint32_t seed = mixed(place(conversation));

	for (uint32_t i = 0; i < conversation->size; i++)
		bytes[i] = (uint8_t)((seed + i * 167u) >> 3);
}

static bool echo_is_right(const struct conversation *conversation, const void *request,
			  const void *reply)
{
	return memcmp(request, reply, conversation->size) == 0;
}

/* matmul. Elements are small whole numbers, so that sums are exact in any order. */

#define ELEMENTS 8 /* different values */
#define CHECKED  4 /* rows of a product that a client computes again */

static size_t matmul_request_bytes(uint32_t rows)
{
	return 2 * sizeof(float) * rows * rows;
}

static size_t matmul_reply_bytes(uint32_t rows)
{
	return sizeof(float) * rows * rows;
}

static float matmul_element(const float *a, const float *b, uint32_t n, uint32_t row,
			    uint32_t column)
{
	float sum = 0;

	for (uint32_t k = 0; k < n; k++)
		sum += a[row * n + k] * b[k * n + column];
	return sum;
}

static void matmul_answer(void *state, uint32_t n, const void *request, void *reply)
{
	const float *a = request, *b = a + (size_t)n * n;
	float *c = reply;

	(void)state;
	memset(c, 0, matmul_reply_bytes(n));
	for (uint32_t row = 0; row < n; row++)
		for (uint32_t k = 0; k < n; k++)
			for (uint32_t column = 0; column < n; column++)
				c[row * n + column] += a[row * n + k] * b[k * n + column];
}

static void matmul_make(struct conversation *conversation, void *request)
{
	uint32_t seed = mixed(place(conversation));
	size_t n = (size_t)conversation->size * conversation->size;
	float *element = request;

	for (size_t i = 0; i < 2 * n; i++) {
		seed = seed * 1664525u + 1013904223u;
		element[i] = (float)(seed >> 24 & (ELEMENTS - 1));
	}
}

/* The whole product would take the client longer than the server: some rows, others each time. */
static bool matmul_is_right(const struct conversation *conversation, const void *request,
			    const void *reply)
{
	uint32_t n = conversation->size;
	const float *a = request, *b = a + (size_t)n * n, *c = reply;

	for (uint32_t i = 0; i < CHECKED; i++) {
		uint32_t row = mixed(place(conversation) + i) % n;

		for (uint32_t column = 0; column < n; column++)
			if (c[row * n + column] != matmul_element(a, b, n, row, column))
				return false;
	}
	return true;
}

/* kv. A connection has KV_OWN keys of its own: it puts and gets them in turn, and knows what they
 * hold. */

#define KV_OWN 16 /* keys of a connection */

static size_t kv_bytes(uint32_t size)
{
	(void)size;
	return sizeof(struct kv_message);
}

/* The slot of @key, or the free one in which it belongs, or NULL. */
static struct kv_slot *kv_find(struct kv_slot *table, uint64_t key)
{
	uint32_t at = kv_first_slot(key);

	for (uint32_t i = 0; i < KV_SLOTS; i++, at = (at + 1) & (KV_SLOTS - 1))
		if (table[at].key == key || !table[at].key)
			return &table[at];
	return NULL;
}

static void kv_answer(void *state, uint32_t size, const void *request, void *reply)
{
	const struct kv_message *asked = request;
	struct kv_message *said = reply;
	struct kv_slot *slot = kv_find(state, asked->key);

	(void)size;
	*said = *asked;
	if (asked->word == KV_PUT && slot) {
		slot->key = asked->key;
		memcpy(slot->value, asked->value, KV_VALUE_BYTES);
		said->word = KV_STORED;
	} else if (asked->word == KV_PUT) {
		said->word = KV_FULL;
	} else if (slot && slot->key) {
		memcpy(said->value, slot->value, KV_VALUE_BYTES);
		said->word = KV_FOUND;
	} else {
		said->word = KV_MISSING;
	}
}

/* Of each 4 * KV_OWN requests the first KV_OWN put, and the others get. */
static bool kv_puts(const struct conversation *conversation)
{
	return conversation->count / KV_OWN % 4 == 0;
}

static void kv_value(const struct conversation *conversation, uint8_t *value)
{
	uint64_t round = conversation->count / (4u * KV_OWN), key = conversation->count % KV_OWN;
	uint32_t seed = mixed((uint64_t)conversation->number << 40 | round << 8 | key);

	for (uint32_t i = 0; i < KV_VALUE_BYTES; i++)
		value[i] = (uint8_t)(seed + i);
}

static void kv_make(struct conversation *conversation, void *request)
{
	struct kv_message *message = request;

	*message = (struct kv_message){.key = 1 + conversation->number * (uint64_t)KV_OWN +
					      conversation->count % KV_OWN,
				       .word = kv_puts(conversation) ? KV_PUT : KV_GET,
				       .tag = (uint32_t)conversation->count};
	if (message->word == KV_PUT)
		kv_value(conversation, message->value);
}

static bool kv_is_right(const struct conversation *conversation, const void *request,
			const void *reply)
{
	const struct kv_message *asked = request, *said = reply;
	uint8_t value[KV_VALUE_BYTES];

	kv_value(conversation, value);
	return said->key == asked->key && said->tag == asked->tag &&
	       said->word == (kv_puts(conversation) ? KV_STORED : KV_FOUND) &&
	       memcmp(said->value, value, KV_VALUE_BYTES) == 0;
}

static const struct service services[] = {
	{"echo", 32, 64, 64, ECHO_BYTES_MAX, 16, echo_bytes, echo_bytes, 0, echo_answer, echo_make,
	 echo_is_right},
	{"matmul", MATMUL_THREADS, 16, 256, MATMUL_ROWS_MAX, MATMUL_STEP, matmul_request_bytes,
	 matmul_reply_bytes, 0, matmul_answer, matmul_make, matmul_is_right},
	{"kv", 32, 0, 0, 0, 1, kv_bytes, kv_bytes, KV_SLOTS * sizeof(struct kv_slot), kv_answer,
	 kv_make, kv_is_right},
};

const struct service *service_find(const char *name, uint64_t size)
{
	for (size_t i = 0; i < countof(services); i++) {
		if (!name || strcmp(services[i].name, name) != 0)
			continue;
		if (size <= services[i].most && size % services[i].step == 0)
			return &services[i];
		fprintf(stderr, "--size: a multiple of %u, at most %u\n", services[i].step,
			services[i].most);
		exit(2);
	}
	fprintf(stderr, "--service: echo, matmul or kv\n");
	exit(2);
}
