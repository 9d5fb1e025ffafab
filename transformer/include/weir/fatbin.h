/* Fatbinary containers, in which compilers pack PTX and machine code, in files and in memory. They
 * are unaligned and untrusted: copy headers out and check sizes first. */
#pragma once

#include <assert.h>
#include <stdint.h>

#define FATBIN_MAGIC 0xba55ed50u

/* Containers follow each other, each padded to 8 bytes. */
struct fatbin_container {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size; /* of the entries behind this header */
};

enum fatbin_kind {
	FATBIN_PTX = 1,
	FATBIN_ELF = 2,
};

enum fatbin_flags {
	FATBIN_LZ4 = 0x2000,
	FATBIN_ZSTD = 0x8000,
	FATBIN_EXACT = 0x100000,  /* sm_90a: for this architecture only */
	FATBIN_FAMILY = 0x200000, /* sm_100f: for this and later ones with the same tens digit */
};

/* The common part of an entry's header; header_size may be larger. */
struct fatbin_entry {
	uint16_t kind, version;
	uint32_t header_size;
	uint64_t payload_size;
	uint32_t compressed_size, options;
	uint16_t minor, major;
	uint32_t sm, name, name_length;
	uint64_t flags, key;
	uint64_t uncompressed_size;
};
static_assert(sizeof(struct fatbin_container) == 16, "layout");
static_assert(sizeof(struct fatbin_entry) == 64, "layout");
