/* Counts the variables of an image: in PTX, in machine code, and in the members of a fatbinary. It
 * may count too much, never too little. */
#include "weir/transform.h"

#include "image/fatbin.h"
#include "syntax/lex.h"

#include <ctype.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN WEIR_VARIABLES_UNKNOWN
#define LARGEST 16u /* bytes of types that are not spelled as a letter and their bits */

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a > UNKNOWN - b ? UNKNOWN : a + b;
}

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UNKNOWN : product;
}

static uint64_t integer(const char *text, size_t len)
{
	uint64_t value;

	return token_integer(text, len, &value) ? value : UNKNOWN;
}

/* Beyond bad characters: the driver may read on there. */
static struct token next_good(struct lexer *lexer)
{
	struct token token = lex_next(lexer);

	while (token.kind == TOKEN_BAD) {
		lexer->at = token.start + 1;
		token = lex_next(lexer);
	}
	return token;
}

/* Behind the space: .align 8 .v2 .b32 a[4][8], b[] = {1, 2}; With @is_operand it may be a part of
 * an instruction, ld.global.b32 r, [a]; whose names have neither sizes nor values. */
struct declaration {
	uint64_t align, vector, type; /* bytes, elements, bytes */
	uint64_t sum, last;           /* bytes of the variables, and of one that has not ended */
	bool is_operand, is_named, is_sized;
};

static void end_variable(struct declaration *d)
{
	uint64_t align = d->align > d->type * d->vector ? d->align : d->type * d->vector;

	if (align && (d->is_sized || !d->is_operand))
		d->sum = plus(d->sum, times(plus(d->last, align - 1) / align, align));
	d->last = 0;
	d->is_sized = false;
}

static void add_word(struct declaration *d, struct lexer *lexer, const struct token *word)
{
	uint64_t bits = integer(word->start + 2, word->len - 2);

	if (token_is(word, ".align")) {
		struct token number = next_good(lexer);
		d->align = integer(number.start, number.len);
	} else if (word->len == 3 && word->start[1] == 'v') {
		d->vector = (uint64_t)word->start[2] & 15;
	} else {
		d->type = strchr("bfsu", word->start[1]) && bits != UNKNOWN ? plus(bits, 7) / 8
									    : LARGEST;
	}
}

/* Without a number, an array has fewer elements than its declaration has characters. */
static void add_dimension(struct declaration *d, struct lexer *lexer)
{
	struct token number = next_good(lexer);
	size_t left = (size_t)(lexer->end - number.start);
	const char *end = memchr(number.start, ';', left);
	uint64_t n = end ? (uint64_t)(end - number.start - 1) : left;

	if (number.kind != ']') {
		n = integer(number.start, number.len);
		number = next_good(lexer);
	}
	if (number.kind != ']' && number.kind != '>')
		n = UNKNOWN; /* an expression */
	d->last = times(d->last, n);
	d->is_sized = true;
}

/* Stops at the token that it does not take. */
static uint64_t scan_declaration(struct lexer *lexer, struct token *token, bool is_operand)
{
	struct declaration d = {.align = 1, .vector = 1, .is_operand = is_operand};

	*token = next_good(lexer);
	for (;; *token = next_good(lexer)) {
		int kind = token->kind;
		if (kind == ';' || kind == ')' || kind == TOKEN_END ||
		    (kind == TOKEN_DOT && d.is_named))
			break;
		if (kind == TOKEN_DOT)
			add_word(&d, lexer, token);
		if (kind == '(')
			while (token->kind != ')' && token->kind != TOKEN_END)
				*token = next_good(lexer);
		if (kind == '[' || kind == '<')
			add_dimension(&d, lexer);
		if (kind == TOKEN_WORD || kind == ',')
			end_variable(&d);
		if (kind == TOKEN_WORD)
			d.last = times(d.type, d.vector);
		d.is_named |= kind == TOKEN_WORD;
		d.is_sized |= kind == '=';
	}
	end_variable(&d);
	return d.sum;
}

static uint64_t ptx_variables(const char *text, size_t len)
{
	struct lexer lexer;
	struct token token;
	uint64_t sum = 0;

	lex_init(&lexer, text, strnlen(text, len), (struct position){1, 1});
	token = next_good(&lexer);
	while (token.kind != TOKEN_END) {
		const char *at = token.start;
		bool is_operand = at > text && isalnum((unsigned char)at[-1]);
		if (token_is(&token, ".global") || token_is(&token, ".const")) {
			sum = plus(sum, scan_declaration(&lexer, &token, is_operand));
			continue;
		}
		token = next_good(&lexer);
	}
	return sum;
}

static bool is_named(const char *image, size_t len, uint64_t at, const char *prefix)
{
	return at < len && strlen(prefix) <= len - at &&
	       !memcmp(image + at, prefix, strlen(prefix));
}

/* .nv.global, .nv.global.init, the constants that have names, and whatever has no contents but is
 * not shared memory. */
static uint64_t elf_variables(const char *image, size_t len)
{
	Elf64_Ehdr head;
	Elf64_Shdr section, names;
	uint64_t sum = 0;

	if (len < sizeof(head))
		return UNKNOWN;
	memcpy(&head, image, sizeof(head));
	if (!head.e_shoff)
		return 0; /* no sections */
	if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_shentsize != sizeof(section) ||
	    head.e_shoff > len || head.e_shnum > (len - head.e_shoff) / sizeof(section) ||
	    head.e_shstrndx >= head.e_shnum)
		return UNKNOWN;
	memcpy(&names, image + head.e_shoff + head.e_shstrndx * sizeof(names), sizeof(names));
	for (size_t i = 0; i < head.e_shnum; i++) {
		memcpy(&section, image + head.e_shoff + i * sizeof(section), sizeof(section));
		uint64_t at = plus(names.sh_offset, section.sh_name);
		if (is_named(image, len, at, ".nv.global") ||
		    is_named(image, len, at, ".nv.constant3") ||
		    (section.sh_type == SHT_NOBITS && !is_named(image, len, at, ".nv.shared")))
			sum = plus(sum, section.sh_size);
	}
	return sum;
}

static uint64_t plain_variables(const char *image, size_t len)
{
	return is_named(image, len, 0, ELFMAG) ? elf_variables(image, len)
					       : ptx_variables(image, len);
}

static bool may_run(const struct fatbin_entry *entry, unsigned sm)
{
	if (entry->kind == FATBIN_PTX)
		return !sm || entry->sm <= sm;
	return entry->kind == FATBIN_ELF && (!sm || entry->sm / 10 == sm / 10);
}

uint64_t weir_image_variables(const void *image, size_t len, unsigned sm)
{
	struct fatbin_walk walk = {image, len, 0};
	struct fatbin_item item;
	struct diag diag = {0};
	uint64_t most = 0;
	int step;

	if (!is_fatbin(image, len))
		return plain_variables(image, len);
	while ((step = fatbin_next(&walk, &item, &diag)) > FATBIN_END) {
		char *payload;
		size_t size;
		if (step != FATBIN_ENTRY || !may_run(&item.entry, sm))
			continue;
		if (fatbin_inflate(&item, &payload, &size, &diag))
			break;
		uint64_t bytes = plain_variables(payload, size);
		most = bytes > most ? bytes : most;
		free(payload);
	}
	return diag.error ? UNKNOWN : most;
}
