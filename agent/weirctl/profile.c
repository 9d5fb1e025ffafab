#include "weirctl/profile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "weir/base.h"

#define FORMS_TEXT 64

static cJSON *request_for(struct arguments *arguments, const char *command)
{
	cJSON *request = cJSON_CreateObject();

	arguments->command = command;
	if (arguments->namespace_)
		cJSON_AddStringToObject(request, "namespace", arguments->namespace_);
	return request;
}

static double number_of(const cJSON *object, const char *name)
{
	return cJSON_GetNumberValue(cJSON_GetObjectItem(object, name));
}

static const char *text_of(const cJSON *object, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(object, name));

	return text ? text : "";
}

/* By who waits: nobody, same-level clients, higher-level ones. */
static void join_forms(const cJSON *profile, char out[FORMS_TEXT])
{
	const cJSON *choice = NULL;
	size_t at = 0;

	*out = '\0';
	cJSON_ArrayForEach(choice, cJSON_GetObjectItem(profile, "choices"))
	{
		if (at < FORMS_TEXT)
			at += (size_t)snprintf(out + at, FORMS_TEXT - at, "%s%s", at ? "/" : "",
					       text_of(choice, "form"));
	}
}

static double blocks_of(const cJSON *profile)
{
	const cJSON *grid = cJSON_GetObjectItem(profile, "grid"), *size = NULL;
	double blocks = 1;

	cJSON_ArrayForEach(size, grid)
	{
		blocks *= cJSON_GetNumberValue(size);
	}
	return blocks;
}

static void print_row(const cJSON *profile)
{
	char forms[FORMS_TEXT];

	join_forms(profile, forms);
	printf("%-20s %-12.12s %10.0f %12.3f  %-30s %s\n", text_of(profile, "namespace"),
	       text_of(profile, "kernel"), blocks_of(profile),
	       number_of(profile, "nativeNanoseconds") / 1e6, forms, text_of(profile, "gpu"));
}

/* Page by page. */
static int print_all(struct arguments *arguments, void (*print)(const cJSON *profile))
{
	const cJSON *profile = NULL;
	double after = 0;

	for (;;) {
		cJSON *request = request_for(arguments, "profiles");
		cJSON_AddNumberToObject(request, "after", after);
		cJSON *answer = ask(arguments, request);
		if (!answer)
			return 1;
		cJSON_ArrayForEach(profile, cJSON_GetObjectItem(answer, "profiles"))
		{
			print(profile);
		}
		const cJSON *next = cJSON_GetObjectItem(answer, "next");
		bool more = cJSON_IsNumber(next) && next->valuedouble > after;
		after = more ? next->valuedouble : after;
		cJSON_Delete(answer);
		if (!more)
			return 0;
	}
}

static int run_list(struct arguments *arguments)
{
	if (!arguments->json)
		printf("%-20s %-12s %10s %12s  %-30s %s\n", "NAMESPACE", "KERNEL", "BLOCKS",
		       "NATIVE (ms)", "FORM BY WHO WAITS", "GPU");
	return print_all(arguments, arguments->json ? print_json : print_row);
}

/* Kernels that ran at the same time. One that was alone is no set. */
static void print_set(const cJSON *set, bool json)
{
	const cJSON *kernels = cJSON_GetObjectItem(set, "kernels"),
		    *workers = cJSON_GetObjectItem(set, "workers");
	int n = cJSON_GetArraySize(kernels);

	if (n < 2)
		return;
	if (json) {
		print_json(set);
		return;
	}
	printf("%7.2fx ", number_of(set, "speedUp"));
	for (int i = 0; i < n; i++)
		printf(" %s x %.0f", cJSON_GetStringValue(cJSON_GetArrayItem(kernels, i)),
		       cJSON_GetNumberValue(cJSON_GetArrayItem(workers, i)));
	printf("\n");
}

static int run_sets(struct arguments *arguments)
{
	const cJSON *set = NULL;

	if (arguments->namespace_) {
		fprintf(stderr, "weirctl: `profile sets` does not know namespaces\n");
		return 1;
	}
	cJSON *answer = ask(arguments, request_for(arguments, "coexec-sets"));
	if (!answer)
		return 1;
	if (!arguments->json)
		printf("%8s  %s\n", "SPEED-UP", "KERNELS, EACH WITH ITS BLOCKS ON AN SM");
	cJSON_ArrayForEach(set, cJSON_GetObjectItem(answer, "sets"))
	{
		print_set(set, arguments->json);
	}
	cJSON_Delete(answer);
	return 0;
}

/* Sets of kernels have no namespace: their numbers are of one. */
static int run_export(struct arguments *arguments)
{
	const cJSON *set = NULL;

	if (print_all(arguments, print_json))
		return 1;
	if (arguments->namespace_)
		return 0;
	cJSON *answer = ask(arguments, request_for(arguments, "coexec-sets"));
	if (!answer)
		return 1;
	cJSON_ArrayForEach(set, cJSON_GetObjectItem(answer, "sets"))
	{
		print_json(set);
	}
	cJSON_Delete(answer);
	return 0;
}

/* 1: it is imported; 0: it is left out; negative: an error message was written. Sets of kernels are
 * of their own namespace, which cannot be replaced. */
static int import_line(struct arguments *arguments, const char *line, unsigned number)
{
	cJSON *content = cJSON_Parse(line);
	bool is_set = cJSON_HasObjectItem(content, "kernels");

	if (!content) {
		fprintf(stderr, "weirctl: line %u is not JSON\n", number);
		return -1;
	}
	if (is_set && arguments->namespace_) {
		cJSON_Delete(content);
		return 0;
	}
	cJSON *request = request_for(arguments, is_set ? "import-coexec-set" : "import-profile");
	cJSON_AddItemToObject(request, is_set ? "set" : "profile", content);
	cJSON *answer = ask(arguments, request);
	if (!answer)
		fprintf(stderr, "weirctl: line %u is not imported\n", number);
	cJSON_Delete(answer);
	return answer ? 1 : -1;
}

static int import_all(struct arguments *arguments, FILE *in)
{
	cleanup(freep) char *line = NULL;
	unsigned number = 0, imported = 0, left_out = 0;
	size_t room = 0;
	int r = 0;

	while (r >= 0 && getline(&line, &room, in) >= 0) {
		number++;
		if (line[strspn(line, " \t\r\n")] == '\0')
			continue;
		r = import_line(arguments, line, number);
		imported += r > 0;
		left_out += r == 0;
	}
	printf("%u imported\n", imported);
	if (left_out)
		printf("%u sets of kernels of other namespaces left out\n", left_out);
	return r < 0;
}

static int run_import(struct arguments *arguments)
{
	FILE *in = arguments->file ? fopen(arguments->file, "re") : stdin;

	if (!in) {
		fprintf(stderr, "weirctl: %s: %s\n", arguments->file, strerror(errno));
		return 1;
	}
	int r = import_all(arguments, in);
	if (arguments->file)
		fclose(in);
	return r;
}

/* How many; negative: an error message was written. */
static double forget(struct arguments *arguments, const char *command)
{
	cJSON *answer = ask(arguments, request_for(arguments, command));
	double n = answer ? number_of(answer, "forgotten") : -1;

	cJSON_Delete(answer);
	return n;
}

static int run_forget(struct arguments *arguments)
{
	if (!arguments->namespace_ == !arguments->all) {
		fprintf(stderr, "weirctl: `profile forget` needs --namespace or --all\n");
		return 1;
	}
	double profiles = forget(arguments, "forget-profiles");
	double sets = arguments->all ? forget(arguments, "forget-coexec-sets") : 0;
	if (profiles < 0 || sets < 0)
		return 1;
	printf("%.0f forgotten\n", profiles + sets);
	return 0;
}

int profile_run(struct arguments *arguments)
{
	static const struct {
		const char *name;
		int (*run)(struct arguments *arguments);
	} verbs[] = {
		{"list", run_list},     {"sets", run_sets},     {"export", run_export},
		{"import", run_import}, {"forget", run_forget},
	};

	for (size_t i = 0; i < countof(verbs); i++)
		if (strcmp(verbs[i].name, arguments->operand) == 0)
			return verbs[i].run(arguments);
	fprintf(stderr, "weirctl: profile: expected " PROFILE_VERBS ", not `%s`\n",
		arguments->operand);
	return 1;
}
