/* One GPU with its pages in a folder of its own, and clients that the test writes itself. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scheduler/client.h"
#include "scheduler/gpu/gpu.h"

#define GPU_CLIENTS 80

extern struct folder root;
extern struct loop loop;
extern struct gpu gpu;
extern struct weir_control_page controls[GPU_CLIENTS];
extern struct weir_status_page statuses[GPU_CLIENTS];
extern struct client clients[GPU_CLIENTS];

int gpu_set_up(void **state);
int gpu_tear_down(void **state);
#define GPU_TEST(name) cmocka_unit_test_setup_teardown(name, gpu_set_up, gpu_tear_down)

/* Returns the client's bit. */
uint8_t add(int i, uint8_t level, uint8_t claim);
struct weir_demand_page *page(int level);
uint64_t word(int level);
void set_words(uint64_t value);
