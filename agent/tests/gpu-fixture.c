#include "gpu-fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "weir/base.h"

static char folder[] = "/tmp/weir-test-XXXXXX";
struct folder root;
struct loop loop;
struct gpu gpu;
struct weir_control_page controls[GPU_CLIENTS];
struct weir_status_page statuses[GPU_CLIENTS];
struct client clients[GPU_CLIENTS];

int gpu_set_up(void **state)
{
	(void)state;
	memset(&gpu, 0, sizeof(gpu));
	memset(controls, 0, sizeof(controls));
	memset(statuses, 0, sizeof(statuses));
	memset(clients, 0, sizeof(clients));
	gpu_id_format(gpu.uuid, gpu.id);
	for (size_t i = 0; i < countof(clients); i++) {
		clients[i].pages = (struct region_pages){&controls[i], &statuses[i], -1, -1};
		clients[i].says_whole = true;
	}
	if (!mkdtemp(folder) || loop_init(&loop) < 0 || region_root_init(&root, folder) < 0)
		return -1;
	return gpu_open(&gpu, &loop, &root);
}

int gpu_tear_down(void **state)
{
	(void)state;
	gpu_close(&gpu);
	region_remove(&root, gpu.id);
	folder_close(&root);
	loop_deinit(&loop);
	int r = rmdir(folder);
	memset(folder + strlen(folder) - 6, 'X', 6);
	return r;
}

uint8_t add(int i, uint8_t level, uint8_t claim)
{
	clients[i].level = level;
	gpu_add(&gpu, &clients[i], claim);
	return clients[i].bit;
}

struct weir_demand_page *page(int level)
{
	return gpu.region.pages[level].demand;
}

uint64_t word(int level)
{
	return atomic_load(&page(level)->word);
}

void set_words(uint64_t value)
{
	for (int level = 0; level < 3; level++)
		atomic_store(&page(level)->word, value);
}
