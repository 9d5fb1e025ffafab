#include "fake-kubelet.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "deviceplugin-v1beta1.pb-c.h"
#include "weir/base.h"

#define WAIT_MAX 30000000000ull /* ns */

static void path_of(const struct fake_kubelet *kubelet, char out[RPC_PATH_MAX], const char *name)
{
	int n = snprintf(out, RPC_PATH_MAX, "%s/%s", kubelet->dir, name);

	assert_in_range(n, 1, RPC_PATH_MAX - 1);
}

static void start_request(struct fake_kubelet *kubelet, struct rpc_request **out,
			  const char *method, const ProtobufCMessage *request,
			  const struct rpc_receiver *receiver, void *owner)
{
	cleanup(bytes_deinit) struct bytes bytes = {0};
	char path[RPC_PATH_MAX], full[128];

	path_of(kubelet, path, kubelet->endpoint);
	snprintf(full, sizeof(full), "/v1beta1.DevicePlugin/%s", method);
	assert_int_equal(codec_encode(&bytes, request), 0);
	assert_int_equal(rpc_request_new(out, kubelet->rpc, path, full, bytes.data, bytes.size, 0,
					 receiver, owner),
			 0);
}

static void stream_message(void *owner, const void *message, size_t size)
{
	struct fake_kubelet *kubelet = owner;
	cleanup(codec_freep) V1beta1__ListAndWatchResponse *list =
		(void *)codec_decode(&v1beta1__list_and_watch_response__descriptor, message, size);

	assert_non_null(list);
	kubelet->lists++;
	kubelet->devices = (unsigned)list->n_devices;
	kubelet->healthy = 0;
	for (size_t i = 0; i < list->n_devices; i++) {
		assert_in_range(strlen(list->devices[i]->id), 1, 63);
		kubelet->healthy += strcmp(list->devices[i]->health, "Healthy") == 0;
		if (i < countof(kubelet->ids))
			snprintf(kubelet->ids[i], sizeof(kubelet->ids[i]), "%s",
				 list->devices[i]->id);
	}
}

static void stream_done(void *owner, enum rpc_status status, const char *text)
{
	struct fake_kubelet *kubelet = owner;

	(void)status;
	(void)text;
	kubelet->stream = NULL;
}

static void options_message(void *owner, const void *message, size_t size)
{
	struct fake_kubelet *kubelet = owner;
	cleanup(codec_freep) V1beta1__DevicePluginOptions *options =
		(void *)codec_decode(&v1beta1__device_plugin_options__descriptor, message, size);

	assert_non_null(options);
	kubelet->prefers = options->get_preferred_allocation_available;
}

static void options_done(void *owner, enum rpc_status status, const char *text)
{
	static const struct rpc_receiver receiver = {stream_message, stream_done};
	const V1beta1__Empty empty = V1BETA1__EMPTY__INIT;
	struct fake_kubelet *kubelet = owner;

	kubelet->asking = NULL;
	if (!kubelet->registering)
		return;
	if (status == RPC_OK) {
		kubelet->registrations++;
		rpc_call_send(kubelet->registering, "", 0);
		start_request(kubelet, &kubelet->stream, "ListAndWatch", &empty.base, &receiver,
			      kubelet);
	}
	rpc_call_finish(kubelet->registering, status, text);
}

static void ask_options(struct fake_kubelet *kubelet)
{
	static const struct rpc_receiver receiver = {options_message, options_done};
	const V1beta1__Empty empty = V1BETA1__EMPTY__INIT;

	start_request(kubelet, &kubelet->asking, "GetDevicePluginOptions", &empty.base, &receiver,
		      kubelet);
}

static void called(void *owner, struct rpc_call *call, const char *method, const void *request,
		   size_t size)
{
	struct fake_kubelet *kubelet = owner;
	cleanup(codec_freep) V1beta1__RegisterRequest *message =
		(void *)codec_decode(&v1beta1__register_request__descriptor, request, size);

	assert_string_equal(method, "/v1beta1.Registration/Register");
	assert_non_null(message);
	assert_string_equal(message->version, "v1beta1");
	assert_in_range(strlen(message->endpoint), 1, sizeof(kubelet->endpoint) - 1);
	assert_in_range(strlen(message->resource_name), 1, sizeof(kubelet->resource) - 1);
	if (kubelet->refusal) {
		rpc_call_finish(call, RPC_UNKNOWN, kubelet->refusal);
		return;
	}
	snprintf(kubelet->endpoint, sizeof(kubelet->endpoint), "%s", message->endpoint);
	snprintf(kubelet->resource, sizeof(kubelet->resource), "%s", message->resource_name);
	kubelet->registering = call;
	ask_options(kubelet);
}

static void ended(void *owner, struct rpc_call *call)
{
	struct fake_kubelet *kubelet = owner;

	if (kubelet->registering == call)
		kubelet->registering = NULL;
}

static void closed(void *owner)
{
	((struct fake_kubelet *)owner)->closing = false;
}

static void alarm_expired(struct loop_timer *timer)
{
	container_of(timer, struct fake_kubelet, alarm)->timed_out = true;
}

void fake_kubelet_init(struct fake_kubelet *kubelet)
{
	*kubelet = (struct fake_kubelet){0};
	strcpy(kubelet->dir, "/tmp/weir-kubelet-XXXXXX");
	assert_non_null(mkdtemp(kubelet->dir));
	assert_int_equal(loop_init(&kubelet->loop), 0);
	assert_int_equal(loop_timer_init(&kubelet->alarm, &kubelet->loop, alarm_expired), 0);
	assert_int_equal(rpc_new(&kubelet->rpc, &kubelet->loop), 0);
}

void fake_kubelet_deinit(struct fake_kubelet *kubelet)
{
	char command[128];

	fake_kubelet_stop(kubelet);
	kubelet->rpc = rpc_free(kubelet->rpc);
	loop_timer_deinit(&kubelet->alarm);
	loop_deinit(&kubelet->loop);
	snprintf(command, sizeof(command), "rm -rf '%s'", kubelet->dir);
	assert_int_equal(system(command), 0);
}

static void remove_sockets(const struct fake_kubelet *kubelet)
{
	DIR *dir = opendir(kubelet->dir);

	assert_non_null(dir);
	for (const struct dirent *entry; (entry = readdir(dir));)
		if (entry->d_type == DT_SOCK)
			unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
}

void fake_kubelet_start(struct fake_kubelet *kubelet)
{
	static const struct rpc_service service = {called, ended, closed};
	char path[RPC_PATH_MAX];

	remove_sockets(kubelet);
	path_of(kubelet, path, "kubelet.sock");
	assert_int_equal(rpc_server_new(&kubelet->server, kubelet->rpc, path, &service, kubelet),
			 0);
}

static bool is_closed(const struct fake_kubelet *kubelet)
{
	return !kubelet->closing;
}

void fake_kubelet_end_stream(struct fake_kubelet *kubelet)
{
	rpc_request_cancel(take(kubelet->stream));
}

void fake_kubelet_stop(struct fake_kubelet *kubelet)
{
	fake_kubelet_end_stream(kubelet);
	rpc_request_cancel(take(kubelet->asking));
	kubelet->registering = NULL;
	if (!kubelet->server)
		return;
	kubelet->closing = true;
	rpc_server_close(take(kubelet->server));
	fake_kubelet_until(kubelet, is_closed);
}

void fake_kubelet_until(struct fake_kubelet *kubelet,
			bool (*done)(const struct fake_kubelet *kubelet))
{
	kubelet->timed_out = false;
	assert_int_equal(loop_timer_set(&kubelet->alarm, WAIT_MAX, 0), 0);
	while (!done(kubelet)) {
		assert_true(loop_step(&kubelet->loop, 100) >= 0);
		if (kubelet->timed_out)
			fail_msg("timed out");
	}
	loop_timer_clear(&kubelet->alarm);
}

/* A call by the test. */
struct question {
	struct fake_kubelet *kubelet;
	const ProtobufCMessageDescriptor *type;
	ProtobufCMessage *answer;
	bool done;
	enum rpc_status status;
	char *text;
};

static void question_message(void *owner, const void *message, size_t size)
{
	struct question *question = owner;

	assert_null(question->answer);
	question->answer = codec_decode(question->type, message, size);
	assert_non_null(question->answer);
}

static void question_done(void *owner, enum rpc_status status, const char *text)
{
	struct question *question = owner;

	question->done = true;
	question->status = status;
	snprintf(question->text, 256, "%s", text);
}

enum rpc_status fake_kubelet_call(struct fake_kubelet *kubelet, const char *method,
				  const ProtobufCMessage *request,
				  const ProtobufCMessageDescriptor *type, ProtobufCMessage **out,
				  char *text)
{
	static const struct rpc_receiver receiver = {question_message, question_done};
	struct question question = {.kubelet = kubelet, .type = type, .text = text};
	struct rpc_request *ignored;

	start_request(kubelet, &ignored, method, request, &receiver, &question);
	assert_int_equal(loop_timer_set(&kubelet->alarm, WAIT_MAX, 0), 0);
	kubelet->timed_out = false;
	while (!question.done && !kubelet->timed_out)
		assert_true(loop_step(&kubelet->loop, 100) >= 0);
	assert_true(question.done);
	loop_timer_clear(&kubelet->alarm);
	*out = question.answer;
	return question.status;
}
