/* Fatbinaries: every packing is read, the rest of an image stays, and the right PTX is chosen. */
#include "weir/transform.h"

#include "image/fatbin.h"

#include <elf.h>
#include <errno.h>
#include <lz4.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include <cmocka.h>

static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
			  ".visible .entry k() { ret; }\n";

struct image {
	char data[4096];
	size_t len;
};

static void add(struct image *image, const void *data, size_t len)
{
	memcpy(image->data + image->len, data, len);
	image->len += len;
}

static void begin(struct image *image)
{
	struct fatbin_container c = {FATBIN_MAGIC, 1, 16, 0};

	image->len = 0;
	add(image, &c, sizeof(c));
}

static void add_entry(struct image *image, struct fatbin_entry e, const void *payload, size_t len)
{
	static const char options[16];
	struct fatbin_container c;

	e.header_size = sizeof(e) + sizeof(options);
	e.payload_size = (len + 7) & ~(size_t)7;
	add(image, &e, sizeof(e));
	add(image, options, sizeof(options));
	add(image, payload, len);
	add(image, options, e.payload_size - len);
	memcpy(&c, image->data, sizeof(c));
	c.size = image->len - sizeof(c);
	memcpy(image->data, &c, sizeof(c));
}

static void add_packed(struct image *image, uint64_t flags, unsigned sm)
{
	struct fatbin_entry e = {.kind = FATBIN_PTX, .sm = sm, .flags = flags};
	char packed[1024];
	int len = sizeof(ptx);

	memcpy(packed, ptx, sizeof(ptx));
	if (!(flags & (FATBIN_LZ4 | FATBIN_ZSTD)))
		strstr(packed, "k()")[0] = (char)('A' + sm / 5); /* tells the entries apart */
	if (flags & FATBIN_LZ4)
		len = LZ4_compress_default(ptx, packed, sizeof(ptx), sizeof(packed));
	if (flags & FATBIN_ZSTD)
		len = (int)ZSTD_compress(packed, sizeof(packed), ptx, sizeof(ptx), 3);
	if (flags & (FATBIN_LZ4 | FATBIN_ZSTD)) {
		e.compressed_size = (uint32_t)len;
		e.uncompressed_size = sizeof(ptx);
	}
	add_entry(image, e, packed, (size_t)len);
}

static void all_packings_are_read(void **state)
{
	(void)state;
	static const uint64_t flags[] = {0, FATBIN_LZ4, FATBIN_ZSTD};

	for (size_t k = 0; k < 3; k++) {
		struct image image;
		struct weir_error error;
		size_t len;
		char *text;

		begin(&image);
		add_packed(&image, flags[k], 80);
		assert_int_equal(weir_image_ptx(&text, &len, image.data, image.len, 90, &error), 0);
		assert_int_equal(strncmp(text, ptx, strlen(".version 8.0\n.target sm_80")), 0);
		assert_int_equal(len, strlen(ptx));
		free(text);
	}
}

static void rewritten_image_keeps_the_rest(void **state)
{
	(void)state;
	struct weir_transform_options options = {.forms = 1u << WEIR_SLICED};
	struct fatbin_entry elf = {.kind = FATBIN_ELF, .sm = 80};
	struct fatbin_walk walk = {0};
	struct fatbin_item item;
	struct diag diag = {0};
	struct weir_error error;
	struct image image;
	void *out;
	char *text;
	size_t len;

	begin(&image);
	add_entry(&image, elf, "machine", 7);
	add_packed(&image, FATBIN_ZSTD, 80);
	assert_int_equal(weir_transform_image(&out, &len, image.data, image.len, &options, &error),
			 0);
	walk.at = out;
	walk.left = len;
	assert_int_equal(fatbin_next(&walk, &item, &diag), FATBIN_CONTAINER);
	assert_int_equal(fatbin_next(&walk, &item, &diag), FATBIN_ENTRY);
	assert_int_equal(item.entry.kind, FATBIN_ELF);
	assert_memory_equal(item.payload, "machine", 8);
	assert_int_equal(fatbin_next(&walk, &item, &diag), FATBIN_ENTRY);
	assert_int_equal(item.entry.flags, 0);
	assert_int_equal(fatbin_inflate(&item, &text, &len, &diag), 0);
	assert_memory_equal(text, ptx, strlen("\n.version 8.0\n.target sm_80\n"));
	assert_non_null(strstr(text, "k__weir_sliced"));
	assert_int_equal(fatbin_next(&walk, &item, &diag), FATBIN_END);
	free(text);
	free(out);
}

static void newest_suitable_ptx_is_chosen(void **state)
{
	(void)state;
	static const struct {
		unsigned sm, want;
	} rows[] = {{75, 75}, {80, 80},   {89, 80},   {90, 90},
		    {91, 80}, {100, 100}, {103, 100}, {120, 80}};
	struct image image;

	begin(&image);
	add_packed(&image, 0, 75);
	add_packed(&image, 0, 80);
	add_packed(&image, FATBIN_EXACT, 90);
	add_packed(&image, FATBIN_FAMILY, 100);
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		struct weir_error error;
		size_t len;
		char *text;

		assert_int_equal(
			weir_image_ptx(&text, &len, image.data, image.len, rows[k].sm, &error), 0);
		assert_int_equal(strstr(text, "() {")[-1], 'A' + rows[k].want / 5);
		free(text);
	}
}

static void unsuitable_images_are_refused(void **state)
{
	(void)state;
	struct weir_error error;
	struct image image;
	size_t len;
	char *text;

	begin(&image);
	add_packed(&image, 0, 80);
	assert_int_equal(weir_image_ptx(&text, &len, image.data, image.len, 75, &error), -ENOENT);
	assert_int_equal(weir_image_ptx(&text, &len, "\177ELF...", 7, 75, &error), -EINVAL);
	assert_string_equal(error.message, "machine code without PTX");
}

/* Cuts at every byte, and makes every size huge. */
static void broken_images_are_refused(void **state)
{
	(void)state;
	struct weir_transform_options options = {0};
	struct weir_error error;
	struct image image;
	size_t len;
	void *out;

	begin(&image);
	add_packed(&image, FATBIN_LZ4, 80);
	for (size_t cut = 4; cut < image.len; cut++)
		assert_true(weir_transform_image(&out, &len, image.data, cut, &options, &error) <
			    0);
	for (size_t at = 20; at < 80; at += 4) {
		struct image broken = image;

		memset(broken.data + at, 0xff, 4);
		if (!weir_transform_image(&out, &len, broken.data, broken.len, &options, &error))
			free(out);
	}
}

static void variables_in_ptx_count(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {
		{".version 8.0\n.target sm_80\n.address_size 64\n", 0},
		{".global .b8 a[1000];", 1000},
		{".visible .global .align 16 .b8 a[1000];", 1008},
		{".global .u32 a, b[3], c = 5;", 4 + 12 + 4},
		{".extern .global .b8 a[];", 0},
		{".global .v4 .f32 a[2][3];", 96},
		{".global .attribute(.managed) .f64 a;", 8},
		{".global .attribute(\1) .b8\2a[100];", 100},
		{".const .b8 a[0x100] = {1, 2, 3};", 256},
		{".global .u64 a[] = {x, generic(y)};", 20 * 8},
		{".visible.global .b8 a[100];", 100},
		{".target sm_80.global .b8 a[100];", 100},
		{".global/* .b8 */ .b8 a // [1]\n[100];", 100},
		{".global .b8 a<100>;", 100},
		{"// .global .b8 a[100];\n", 0},
		{"{ ld.global.u32 %r1, [x]; st.global.v2.f32 [y+4], {%f1, %f2}; "
		 "cvta.to.global.u64 %rd1, %rd2; ld.const.u32 r, [c]; }",
		 0},
		{".entry k(.param .u64 .ptr .global .align 4 p) { .global .b8 a[100]; }", 100},
		{"# 1\n\" .global .b8 a[100];", 100},
		{"/* .global .b8 a[100];", 100},
		{".global .b8 a[2*50];", WEIR_VARIABLES_UNKNOWN},
		{".global .b8 a[N];", WEIR_VARIABLES_UNKNOWN},
		{".global .b8 a[0x1000000000][0x1000000000];", WEIR_VARIABLES_UNKNOWN},
		{".global .align 0 .v0 .b0 a;", 0},
		{".global", 0},
		{".global .b8 a[", WEIR_VARIABLES_UNKNOWN},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t bytes = weir_image_variables(cases[i].text, strlen(cases[i].text) + 1, 80);
		if (bytes != cases[i].bytes)
			print_message("%s: %llu\n", cases[i].text, (unsigned long long)bytes);
		assert_true(bytes == cases[i].bytes);
	}
}

/* Sections of machine code, as the compiler makes them. */
struct machine_code {
	Elf64_Ehdr head;
	Elf64_Shdr sections[6];
	char names[80];
};

static struct machine_code machine_code(uint64_t size)
{
	static const char names[] = "\0.nv.global\0.nv.global.init\0.nv.constant3\0.nv.shared.k";
	struct machine_code code = {
		.head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64},
			 .e_shoff = offsetof(struct machine_code, sections),
			 .e_shentsize = sizeof(Elf64_Shdr),
			 .e_shnum = 6,
			 .e_shstrndx = 5},
		.sections = {{0},
			     {.sh_name = 1, .sh_type = SHT_NOBITS, .sh_size = size},
			     {.sh_name = 12, .sh_type = SHT_PROGBITS, .sh_size = 400},
			     {.sh_name = 28, .sh_type = SHT_PROGBITS, .sh_size = 200},
			     {.sh_name = 42, .sh_type = SHT_NOBITS, .sh_size = 48 << 10},
			     {.sh_offset = offsetof(struct machine_code, names),
			      .sh_size = sizeof(names)}},
	};

	memcpy(code.names, names, sizeof(names));
	return code;
}

static void variables_in_machine_code_count(void **state)
{
	struct machine_code code = machine_code(4000000);
	struct image image;

	(void)state;
	assert_true(weir_image_variables(&code, sizeof(code), 90) == 4000600);
	begin(&image);
	add_packed(&image, 0, 90);
	add_entry(&image, (struct fatbin_entry){.kind = FATBIN_ELF, .sm = 90}, &code, sizeof(code));
	code = machine_code(8000000);
	add_entry(&image, (struct fatbin_entry){.kind = FATBIN_ELF, .sm = 80}, &code, sizeof(code));
	assert_true(weir_image_variables(image.data, image.len, 90) == 4000600);
	assert_true(weir_image_variables(image.data, image.len, 86) == 8000600);
	assert_true(weir_image_variables(image.data, image.len, 0) == 8000600);
	assert_true(weir_image_variables(image.data, image.len, 75) == 0);
	assert_true(weir_image_variables(image.data, image.len - 1, 90) == WEIR_VARIABLES_UNKNOWN);

	/* Under another name. */
	code.sections[1].sh_name = 2;
	assert_true(weir_image_variables(&code, sizeof(code), 90) == 8000600);
	code.head.e_shnum = 70;
	assert_true(weir_image_variables(&code, sizeof(code), 90) == WEIR_VARIABLES_UNKNOWN);
	assert_true(weir_image_variables(&code, 20, 90) == WEIR_VARIABLES_UNKNOWN);
}

static void packed_machine_code_counts(void **state)
{
	struct machine_code code = machine_code(4000000);
	struct image image;
	char packed[2048];

	(void)state;
	for (int zstd = 0; zstd < 2; zstd++) {
		struct fatbin_entry e = {.kind = FATBIN_ELF,
					 .sm = 90,
					 .flags = zstd ? FATBIN_ZSTD : FATBIN_LZ4,
					 .uncompressed_size = sizeof(code)};
		size_t len = zstd ? ZSTD_compress(packed, sizeof(packed), &code, sizeof(code), 3)
				  : (size_t)LZ4_compress_default((const char *)&code, packed,
								 sizeof(code), sizeof(packed));
		e.compressed_size = (uint32_t)len;
		begin(&image);
		add_entry(&image, e, packed, len);
		assert_true(weir_image_variables(image.data, image.len, 90) == 4000600);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_packings_are_read),
		cmocka_unit_test(rewritten_image_keeps_the_rest),
		cmocka_unit_test(newest_suitable_ptx_is_chosen),
		cmocka_unit_test(unsuitable_images_are_refused),
		cmocka_unit_test(broken_images_are_refused),
		cmocka_unit_test(variables_in_ptx_count),
		cmocka_unit_test(variables_in_machine_code_count),
		cmocka_unit_test(packed_machine_code_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
