#include "robustness/hostile/kernel.h"
#include "robustness/hostile/client.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAME               "k"
#define LARGE_INSTRUCTIONS 8000

static char *print_kernel(uint64_t salt, unsigned instructions, size_t *size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, size);

	if (!out)
		exit(2);
	fprintf(out,
		".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry " NAME "()\n{\n"
		"\t.reg .u32 %%r<2>;\n\tmov.u32 %%r1, %u;\n",
		(unsigned)salt);
	for (unsigned i = 0; i < instructions; i++)
		fprintf(out, "\tadd.u32 %%r1, %%r1, %u;\n", i);
	fprintf(out, "\tret;\n}\n// %llu", (unsigned long long)salt);
	fclose(out);
	return text;
}

static void ask(int socket, uint32_t id, uint64_t salt, unsigned instructions)
{
	struct weir_compile_file head = {.magic = WEIR_COMPILE_MAGIC,
					 .version = 1,
					 .sm = 90,
					 .forms = 1u << 1,
					 .name = sizeof(head),
					 .name_size = sizeof(NAME),
					 .image = sizeof(head) + sizeof(NAME)};
	struct weir_compile message = {.id = id};
	size_t size;
	char *text = print_kernel(salt, instructions, &size);
	int fd = memfd_create("kernel", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	head.image_size = size;
	if (fd < 0 || write(fd, &head, sizeof(head)) < 0 || write(fd, NAME, sizeof(NAME)) < 0 ||
	    write(fd, text, size) != (ssize_t)size ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) < 0)
		cannot("make a kernel's file");
	weir_header_init(&message.header, WEIR_COMPILE, sizeof(message));
	weir_message_send(socket, &message, sizeof(message), &fd, 1);
	close(fd);
	free(text);
}

void kernel_ask(int socket, uint32_t id, uint64_t salt)
{
	ask(socket, id, salt, 0);
}

void kernel_ask_large(int socket, uint32_t id, uint64_t salt)
{
	ask(socket, id, salt, LARGE_INSTRUCTIONS);
}

uint64_t kernel_new_salt(void)
{
	static uint64_t n;

	return ((uint64_t)getpid() << 44) + (clock_ms() << 16) + n++;
}
