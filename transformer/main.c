/* weir-transform: the transformer as a command. Requested output goes to stdout, messages to
 * stderr. */
#include "weir/transform.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_MAX ((size_t)4 << 30)

__attribute__((visibility("default"))) const char *argp_program_version =
	"weir-transform " WEIR_VERSION;

enum key {
	KEY_REPRINT = 256,
	KEY_OBJECT,
	KEY_SM,
	KEY_REGISTERS,
};

static const struct argp_option option_table[] = {
	{"form", 'f', "FORM", 0,
	 "Add kernels in this form: sliced, persistent, resumable; may be repeated", 0},
	{"kernel", 'k', "NAME", 0, "Rewrite only this kernel", 0},
	{"list", 'l', NULL, 0, "List each kernel's forms, and why a form is refused", 0},
	{"dump-after", 'd', "PASS", 0, "Print kernels to stderr after a pass", 0},
	{"reprint", KEY_REPRINT, NULL, 0,
	 "Print all functions from their IR, also those that are not rewritten", 0},
	{"object", KEY_OBJECT, NULL, 0,
	 "Write the kernel given by --kernel as an object with PTX, as the compile service does",
	 0},
	{"registers", KEY_REGISTERS, "NUMBER", 0,
	 "Register limit per thread of rewritten kernels; with --object: registers per thread of "
	 "the original kernel",
	 0},
	{"sm", KEY_SM, "NUMBER", 0, "With --object: compute capability of the device, default 90",
	 0},
	{0},
};

struct arguments {
	struct weir_transform_options options;
	bool list, is_object;
	unsigned sm;
	const char *input, *output;
};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "weir-transform: %s: %s\n", what, why);
	exit(EXIT_FAILURE);
}

static void add_form(struct arguments *a, struct argp_state *state, const char *name)
{
	for (unsigned form = WEIR_NATIVE; form < WEIR_FORM_COUNT; form++) {
		if (!strcmp(name, weir_form_name((enum weir_form)form))) {
			a->options.forms |= 1u << form;
			return;
		}
	}
	argp_error(state, "there is no form '%s'", name);
}

static error_t parse_argument(int key, char *argument, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 'f':
		add_form(a, state, argument);
		return 0;
	case 'k':
		a->options.kernel = argument;
		return 0;
	case 'l':
		a->list = true;
		return 0;
	case 'd':
		a->options.dump_after = argument;
		return 0;
	case KEY_REPRINT:
		a->options.reprint = true;
		return 0;
	case KEY_OBJECT:
		a->is_object = true;
		return 0;
	case KEY_SM:
		a->sm = (unsigned)strtoul(argument, NULL, 10);
		return 0;
	case KEY_REGISTERS:
		a->options.registers_max = (unsigned)strtoul(argument, NULL, 10);
		return 0;
	case ARGP_KEY_END:
		if (a->is_object && !a->options.kernel)
			argp_error(state, "--object is for one --kernel");
		return 0;
	case ARGP_KEY_ARG:
		if (a->output)
			argp_usage(state);
		*(a->input ? &a->output : &a->input) = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static FILE *open_or_die(const char *path, const char *mode, FILE *standard)
{
	FILE *file = path && strcmp(path, "-") != 0 ? fopen(path, mode) : standard;

	if (!file)
		die(path, strerror(errno));
	return file;
}

static char *read_or_die(const char *path, size_t *len)
{
	FILE *file = open_or_die(path, "rb", stdin);
	const char *name = path ? path : "stdin";
	size_t room = 1 << 16, n;
	char *data = NULL;

	*len = 0;
	do {
		char *more = data && *len < room ? data : realloc(data, room *= 2);

		if (!more || room > INPUT_MAX)
			die(name, strerror(more ? EFBIG : ENOMEM));
		data = more;
		n = fread(data + *len, 1, room - *len, file);
		*len += n;
	} while (n);
	if (ferror(file))
		die(name, strerror(EIO));
	if (file != stdin)
		fclose(file);
	return data;
}

static void write_or_die(const char *path, const void *data, size_t len)
{
	FILE *file = open_or_die(path, "wb", stdout);

	if (fwrite(data, 1, len, file) != len || fflush(file) || (file != stdout && fclose(file)))
		die(path ? path : "stdout", strerror(errno));
}

static void print_verdict(void *data, const struct weir_verdict *v)
{
	const struct arguments *a = data;

	if (!a->list && v->eligible)
		return;
	fprintf(a->list ? stdout : stderr, "%s\t%s\t", v->kernel, weir_form_name(v->form));
	if (v->eligible && v->save_fixed) {
		printf("yes\tsaves up to %u bytes plus %u per thread", v->save_fixed,
		       v->save_per_thread);
		if (v->save_spared)
			printf(", on average %u bytes less", v->save_spared);
		printf("\n");
	} else if (v->eligible)
		printf("yes\n");
	else if (v->line)
		fprintf(a->list ? stdout : stderr, "no\tline %u: %s\n", v->line, v->reason);
	else
		fprintf(a->list ? stdout : stderr, "no\t%s\n", v->reason);
}

static void print_dump(void *data, const char *pass, const char *ptx, size_t len)
{
	(void)data;
	fprintf(stderr, "// after %s\n%.*s", pass, (int)len, ptx);
}

static int run(const struct arguments *a, void **out, size_t *out_len, const void *in, size_t len,
	       struct weir_error *error)
{
	struct weir_object_request request = {.image = in,
					      .len = len,
					      .kernel = a->options.kernel,
					      .sm = a->sm,
					      .forms = a->options.forms,
					      .registers = a->options.registers_max};

	return a->is_object ? weir_object_build(out, out_len, &request, error)
			    : weir_transform_image(out, out_len, in, len, &a->options, error);
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = option_table,
		.parser = parse_argument,
		.args_doc = "[INPUT [OUTPUT]]",
		.doc = "Adds copies of kernels that can leave while they run to a PTX text or a "
		       "fatbinary. The originals stay."};
	struct arguments a = {.options = {.verdict = print_verdict, .dump = print_dump}, .sm = 90};
	struct weir_error error = {0};
	void *out = NULL;
	size_t in_len, out_len;
	char *in;

	argp_parse(&argp, argc, argv, 0, NULL, &a);
	a.options.data = &a;
	if ((a.list || a.is_object) && !a.options.forms)
		a.options.forms = ~0u;
	in = read_or_die(a.input, &in_len);
	if (run(&a, &out, &out_len, in, in_len, &error)) {
		fprintf(stderr, "weir-transform: %s:", a.input ? a.input : "stdin");
		if (error.line)
			fprintf(stderr, "%u:%u:", error.line, error.column);
		fprintf(stderr, " %s\n", error.message);
		return EXIT_FAILURE;
	}
	if (!a.list)
		write_or_die(a.output, out, out_len);
	free(out);
	free(in);
	return EXIT_SUCCESS;
}
