#include "loop/handles.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

int handles_init(struct handles *handles, uint32_t size, const struct cufile *cufile)
{
	*handles = (struct handles){.size = size, .cufile = cufile};
	handles->table = calloc(size, sizeof(handles->table[0]));
	if (!handles->table)
		return -ENOMEM;
	for (uint32_t i = 0; i < size; i++)
		handles->table[i].next = i + 1 < size ? i + 1 : HANDLE_NONE;
	return 0;
}

static void close_all(const struct handles *handles, struct handle *handle)
{
	cufile_remove(handles->cufile, handle->gds);
	close(handle->fd);
	if (handle->direct >= 0)
		close(handle->direct);
}

void handles_deinit(struct handles *handles)
{
	for (uint32_t i = 0; handles->table && i < handles->size; i++)
		if (handles->table[i].kind != HANDLE_FREE)
			close_all(handles, &handles->table[i]);
	free(handles->table);
	handles->table = NULL;
}

int64_t handles_add(struct handles *handles, enum handle_kind kind, int fd)
{
	uint32_t number = handles->unused;

	if (number == HANDLE_NONE)
		return -EMFILE;
	struct handle *handle = &handles->table[number];
	handles->unused = handle->next;
	handles->open++;
	*handle = (struct handle){
		.kind = kind,
		.fd = fd,
		.direct = -1,
		.next = HANDLE_NONE,
		.ready = HANDLE_NONE,
		.ready_end = HANDLE_NONE,
		.asking = HANDLE_NONE,
		.asking_end = HANDLE_NONE,
		.listener = HANDLE_NONE,
	};
	return number;
}

struct handle *handles_find(struct handles *handles, int32_t number)
{
	if (number < 0 || (uint32_t)number >= handles->size)
		return NULL;
	struct handle *handle = &handles->table[number];
	return handle->kind == HANDLE_FREE || handle->closing ? NULL : handle;
}

static void end(struct handles *handles, struct handle *handle)
{
	close_all(handles, handle);
	handle->kind = HANDLE_FREE;
	handle->closing = false;
	handle->port = 0;
	handle->next = handles->unused;
	handles->unused = handles_number(handles, handle);
	handles->open--;
}

void handles_close(struct handles *handles, struct handle *handle)
{
	handle->closing = true;
	if (!handle->pending)
		end(handles, handle);
}

void handles_use(struct handle *handle)
{
	handle->pending++;
}

void handles_unuse(struct handles *handles, struct handle *handle)
{
	if (!--handle->pending && handle->closing)
		end(handles, handle);
}
