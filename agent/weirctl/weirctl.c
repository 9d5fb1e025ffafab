/* weirctl: shows and changes the state of this node's agent, over its control socket. */
#include <argp.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "weirctl/ask.h"
#include "weirctl/profile.h"
#include "weirctl/table.h"
#include "weirctl/top.h"

#include "weir/base.h"
#include "weir/units.h"

#define DEFAULT_SOCKET "/run/weir-agent/control.sock"
#define WAIT           (10 * NS_PER_S) /* before the agent counts as dead */
#define HEALTH_WAIT    (3 * NS_PER_S)  /* less than the timeout of the chart's livenessProbe */

__attribute__((visibility("default"))) const char *argp_program_version = "weirctl " WEIR_VERSION;

/* False: an error message was written. */
static bool flush(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return true;
	fprintf(stderr, "weirctl: standard output: %s\n", strerror(errno));
	return false;
}

/* Takes @request, sends it, and prints the answer as JSON, or else the text called @name in it, if
 * that is set. Returns the exit status. */
static int ask_and_print(const struct arguments *arguments, cJSON *request, const char *name,
			 const char *end)
{
	cJSON *answer = ask(arguments, request);
	const char *text = name ? cJSON_GetStringValue(cJSON_GetObjectItem(answer, name)) : "";

	if (answer && !text)
		fprintf(stderr, "weirctl: the agent answers without a %s\n", name);
	else if (answer && arguments->json)
		print_json(answer);
	else if (answer)
		printf("%s%s", text, end);
	cJSON_Delete(answer);
	return !answer || !text;
}

static void show(const struct arguments *arguments, const cJSON *answer, enum table_view view)
{
	if (arguments->json)
		print_json(answer);
	else
		table_print(stdout, answer, view);
}

static int run_status(struct arguments *arguments)
{
	cJSON *answer = ask(arguments, cJSON_CreateObject());

	if (!answer)
		return 1;
	show(arguments, answer, TABLE_STATUS);
	cJSON_Delete(answer);
	return 0;
}

static int run_health(struct arguments *arguments)
{
	arguments->wait = HEALTH_WAIT;
	return ask_and_print(arguments, cJSON_CreateObject(), "health", "\n");
}

static bool show_top(const struct arguments *arguments, const cJSON *answer)
{
	/* Clear the terminal. */
	if (!arguments->json && isatty(STDOUT_FILENO))
		fputs("\033[H\033[J", stdout);
	show(arguments, answer, TABLE_TOP);
	return flush();
}

static int run_top(struct arguments *arguments)
{
	uint64_t every = arguments->duration ? arguments->duration : NS_PER_S;
	struct timespec pause = {(time_t)(every / NS_PER_S), (long)(every % NS_PER_S)};
	cJSON *before = NULL;
	bool failed = false;
	uint64_t then = 0;

	arguments->command = "status";
	for (uint64_t n = 0; !failed && (!arguments->times || n <= arguments->times); n++) {
		cJSON *now = ask(arguments, cJSON_CreateObject());
		failed = !now;
		if (failed)
			break;
		uint64_t time = monotonic_now();
		if (before) {
			top_rates(now, before, (double)(time - then) / 1e9);
			failed = !show_top(arguments, now);
		}
		cJSON_Delete(before);
		before = now;
		then = time;
		if (!failed && (n < arguments->times || !arguments->times))
			nanosleep(&pause, NULL);
	}
	cJSON_Delete(before);
	return failed;
}

static int run_policy(struct arguments *arguments)
{
	cJSON *request = cJSON_CreateObject();

	if (arguments->operand)
		cJSON_AddStringToObject(request, "name", arguments->operand);
	return ask_and_print(arguments, request, "policy", "\n");
}

/* Asks for @number, called @name, of the client that the command line names. */
static int ask_of_client(struct arguments *arguments, const char *command, const char *name,
			 double number)
{
	uint64_t client;

	arguments->command = command;
	if (!number_parse(arguments->operand, 0, UINT64_MAX, &client)) {
		fprintf(stderr, "weirctl: expected a client's number, not `%s`\n",
			arguments->operand);
		return 1;
	}
	cJSON *request = cJSON_CreateObject();
	cJSON_AddNumberToObject(request, "client", (double)client);
	cJSON_AddNumberToObject(request, name, number);
	return ask_and_print(arguments, request, NULL, "");
}

static int hold_for(struct arguments *arguments, uint64_t ns)
{
	return ask_of_client(arguments, "hold", "seconds", (double)ns / 1e9);
}

static int run_bound(struct arguments *arguments)
{
	return ask_of_client(arguments, "bound", "workers", (double)arguments->workers);
}

static int run_hold(struct arguments *arguments)
{
	return hold_for(arguments, arguments->duration ? arguments->duration : 10 * NS_PER_S);
}

static int run_release(struct arguments *arguments)
{
	return hold_for(arguments, 0);
}

static int run_trace(struct arguments *arguments)
{
	cJSON *request = cJSON_CreateObject();

	arguments->records = arguments->duration ? arguments->duration : 10 * NS_PER_S;
	cJSON_AddNumberToObject(request, "seconds", (double)arguments->records / 1e9);
	if (arguments->gpu)
		cJSON_AddStringToObject(request, "gpu", arguments->gpu);
	return ask_and_print(arguments, request, "trace", "");
}

/* NULL: an error message was written. */
static cJSON *ask_about_pod(const struct arguments *arguments)
{
	cJSON *request = cJSON_CreateObject();

	cJSON_AddStringToObject(request, "pod", arguments->operand);
	return ask(arguments, request);
}

/* The agent may first have to ask the API server. */
static int run_explain(struct arguments *arguments)
{
	const struct timespec pause = {.tv_nsec = 100000000};
	cJSON *answer = ask_about_pod(arguments);

	for (int i = 0; i < 100 && cJSON_IsTrue(cJSON_GetObjectItem(answer, "fetching")); i++) {
		nanosleep(&pause, NULL);
		cJSON_Delete(answer);
		answer = ask_about_pod(arguments);
	}
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(answer, "text"));
	if (answer && !text)
		fprintf(stderr, "weirctl: the API server does not answer\n");
	else if (answer && arguments->json)
		print_json(answer);
	else if (answer)
		fputs(text, stdout);
	cJSON_Delete(answer);
	return !text;
}

static const struct {
	const char *name;
	int (*run)(struct arguments *arguments);
	bool may_operand, must_operand, may_file;
} commands[] = {
	{"status", run_status, false, false}, {"top", run_top, false, false},
	{"policy", run_policy, true, false},  {"hold", run_hold, true, true},
	{"release", run_release, true, true}, {"bound", run_bound, true, true},
	{"trace", run_trace, false, false},   {"health", run_health, false, false},
	{"explain", run_explain, true, true}, {"profile", profile_run, true, true, true},
};

/* countof(commands): unknown. */
static size_t find_command(const char *name)
{
	size_t i = 0;

	while (i < countof(commands) && strcmp(commands[i].name, name) != 0)
		i++;
	return i;
}

static void parse_word(char *word, struct arguments *arguments, struct argp_state *state)
{
	size_t command = find_command(arguments->command ? arguments->command : word);

	if (command == countof(commands))
		argp_error(state, "unknown command `%s`", word);
	if (!arguments->command)
		arguments->command = word;
	else if (commands[command].may_operand && !arguments->operand)
		arguments->operand = word;
	else if (commands[command].may_file && !arguments->file)
		arguments->file = word;
	else
		argp_error(state, "`%s` does not take `%s`", arguments->command, word);
}

static const char *operand_of(const char *command)
{
	if (strcmp(command, "explain") == 0)
		return "a pod's name";
	return strcmp(command, "profile") == 0 ? PROFILE_VERBS : "a client's number";
}

static error_t parse(int key, char *value, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case 's':
		arguments->socket = value;
		return 0;
	case 'j':
		arguments->json = true;
		return 0;
	case 'g':
		arguments->gpu = value;
		return 0;
	case 'N':
		arguments->namespace_ = value;
		return 0;
	case 'a':
		arguments->all = true;
		return 0;
	case 'f':
		if (!duration_parse(value, 1, DURATION_MAX, &arguments->duration))
			argp_error(state, "expected a duration like 500ms or 1m, not `%s`", value);
		return 0;
	case 'w':
		if (!number_parse(value, 0, UINT32_MAX, &arguments->workers))
			argp_error(state, "expected a number, not `%s`", value);
		return 0;
	case 'n':
		if (!number_parse(value, 1, UINT32_MAX, &arguments->times))
			argp_error(state, "expected a number above 0, not `%s`", value);
		return 0;
	case ARGP_KEY_ARG:
		parse_word(value, arguments, state);
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_usage(state);
		return 0;
	case ARGP_KEY_END:
		if (commands[find_command(arguments->command)].must_operand && !arguments->operand)
			argp_error(state, "`%s` needs %s", arguments->command,
				   operand_of(arguments->command));
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option options[] = {
	{"socket", 's', "PATH", 0, "The agent's control socket (default " DEFAULT_SOCKET ")", 0},
	{"json", 'j', NULL, 0, "Print JSON instead of a table", 0},
	{"for", 'f', "DURATION", 0,
	 "hold, trace: how long (default 10s, at most 1h); top: time between updates (default 1s)",
	 0},
	{"times", 'n', "N", 0, "top: stop after N updates", 0},
	{"workers", 'w', "N", 0, "bound: so many blocks on an SM (default 0: no bound)", 0},
	{"gpu", 'g', "ID", 0, "trace: the GPU; needed if the node has several", 0},
	{"namespace", 'N', "NAME", 0,
	 "profile: those of a namespace; uid:NUMBER: of a user outside pods; *: for everybody", 0},
	{"all", 'a', NULL, 0, "profile forget: all of the node", 0},
	{0},
};

static const struct argp description = {
	.options = options,
	.parser = parse,
	.args_doc = "status\ntop\npolicy [NAME]\nhold CLIENT\nrelease "
		    "CLIENT\nbound CLIENT\ntrace\nhealth\nexplain [NAMESPACE/]POD\nprofile "
		    "list|sets|export|forget\nprofile "
		    "import [FILE]",
	.doc = "Controls the Weir agent of this node.\v"
	       "status   show all clients of the GPUs\n"
	       "top      show what clients do now, updated every second\n"
	       "policy   show or set the policy, until the next start or configuration change\n"
	       "hold     keep a client from running\n"
	       "release  let a held client run again\n"
	       "bound    bound how many blocks of a client run on an SM\n"
	       "trace    record what clients do, for weir-sim\n"
	       "health   ask whether the agent answers within 3 s\n"
	       "explain  say why a pod is pending, refused, has its level, or is slow\n"
	       "profile  list, export, import or forget what is known of kernels; sets: which\n"
	       "         ran at the same time (policy coexec)\n",
};

int main(int argc, char **argv)
{
	struct arguments arguments = {.socket = DEFAULT_SOCKET, .wait = WAIT};

	argp_parse(&description, argc, argv, 0, NULL, &arguments);
	int r = commands[find_command(arguments.command)].run(&arguments);
	return r == 0 && !flush() ? 1 : r;
}
