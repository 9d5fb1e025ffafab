/* A scheduler with one GPU. The test writes the clients' pages and chooses the times of looks. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scheduler/scheduler.h"
#include "scheduler/tenants.h"

#define MS            1000000ull
#define WORLD_CLIENTS 5

extern struct world {
	struct loop loop;
	struct scheduler scheduler;
	struct gpu gpu, *gpus;
	struct weir_control_page control[WORLD_CLIENTS];
	struct weir_status_page status[WORLD_CLIENTS];
	struct weir_demand_page demand[WEIR_DEMAND_LEVELS];
	struct tenant tenants[WORLD_CLIENTS];
	struct client clients[WORLD_CLIENTS];
	uint64_t now;
} world;

int world_set_up(void **state);
int world_tear_down(void **state);
#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)

void come(unsigned i, uint8_t level, uint32_t share);
void go(unsigned i);
void work(unsigned i, uint64_t remaining);
/* Returns the time until the next look. */
uint64_t look_after(uint64_t ns);
/* How many clients are held. */
unsigned n_held(void);
/* Clients 0 and 1 come, with 100 shares and 1 ms of work each, and the scheduler looks. */
void two_at_work(uint8_t first_level, uint8_t second_level);
