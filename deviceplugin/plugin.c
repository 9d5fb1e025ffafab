#include "plugin.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "codec.h"
#include "config.h"
#include "deviceplugin-v1beta1.pb-c.h"
#include "weir/base.h"
#include "weir/error.h"
#include "weir/log.h"

#define SETTLE         (200 * NS_PER_MS) /* collects changes of the directory */
#define PAUSE_MIN      NS_PER_S
#define PAUSE_MAX      (30 * NS_PER_S)
#define STREAM_WAIT    (10 * NS_PER_S) /* for ListAndWatch after a registration */
#define STREAM_LONG    (30 * NS_PER_S) /* a stream that lived this long was good */
#define REGISTER_MS    15000u          /* the kubelet needs 10 s to notice that we are dead */
#define KUBELET_SOCKET "kubelet.sock"
#define API_VERSION    "v1beta1"
#define SOCKET_PREFIX  "weir-"
#define SOCKET_SUFFIX  ".sock"

/* Logs a complaint once until another one follows. Always false. */
__attribute__((format(printf, 2, 3))) static bool complain(struct plugin *plugin,
							   const char *format, ...)
{
	char text[sizeof(plugin->said)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (strcmp(text, plugin->said) != 0) {
		memcpy(plugin->said, text, sizeof(text));
		log_warning("%s", text);
	}
	return false;
}

static int path_of(char out[RPC_PATH_MAX], const struct plugin *plugin, const char *name)
{
	int n = snprintf(out, RPC_PATH_MAX, "%s/%s", plugin->config->plugin_dir, name);

	return n < (int)RPC_PATH_MAX ? 0 : -ENAMETOOLONG;
}

static void look_in(struct plugin *plugin, uint64_t delay)
{
	loop_timer_set(&plugin->timer, delay, 0);
}

static void look_later(struct plugin *plugin)
{
	look_in(plugin, plugin->pause);
	plugin->pause = plugin->pause * 2 > PAUSE_MAX ? PAUSE_MAX : plugin->pause * 2;
}

/* Ends the registration, the streams and the server. */
static void let_go(struct plugin *plugin)
{
	rpc_request_cancel(take(plugin->registering));
	rpc_server_close(take(plugin->server));
	service_reset(&plugin->service);
	plugin->watched_since = 0;
	plugin->registered = false;
	loop_timer_clear(&plugin->timer);
}

/* True: nobody listens there. A process id in the name would not help: in a container ours is
 * always the same.
 */
static bool is_stale(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	cleanup(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	return fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 &&
	       errno == ECONNREFUSED;
}

/* Removes the sockets of earlier instances that were killed. */
static void remove_stale(const struct plugin *plugin)
{
	DIR *dir = opendir(plugin->config->plugin_dir);

	if (!dir)
		return;
	for (const struct dirent *entry; (entry = readdir(dir));) {
		const char *name = entry->d_name;
		char path[RPC_PATH_MAX];
		if (fnmatch(SOCKET_PREFIX "*" SOCKET_SUFFIX, name, 0) != 0 ||
		    path_of(path, plugin, name) < 0 || !is_stale(path))
			continue;
		log_info("removing the socket of a dead instance: %s", name);
		unlink(path);
	}
	closedir(dir);
}

static int serve(struct plugin *plugin)
{
	char path[RPC_PATH_MAX];

	remove_stale(plugin);
	snprintf(plugin->endpoint, sizeof(plugin->endpoint),
		 SOCKET_PREFIX "%d-%llx-%u" SOCKET_SUFFIX, (int)getpid(),
		 (unsigned long long)time(NULL), plugin->servers++);
	int r = path_of(path, plugin, plugin->endpoint);
	if (r < 0)
		return r;
	return rpc_server_new(&plugin->server, plugin->rpc, path, &service_methods,
			      &plugin->service);
}

static void registered(void *owner, enum rpc_status status, const char *text)
{
	struct plugin *plugin = owner;

	plugin->registering = NULL;
	if (status != RPC_OK) {
		complain(plugin, "kubelet does not register %s: %s (status %d)",
			 plugin->config->resource_name, text, (int)status);
		let_go(plugin);
		look_later(plugin);
		return;
	}
	plugin->registered = true;
	plugin->said[0] = '\0';
	log_info("registered %s with the kubelet, endpoint %s", plugin->config->resource_name,
		 plugin->endpoint);
	if (!plugin->watched_since)
		look_in(plugin, STREAM_WAIT);
}

static int register_with_kubelet(struct plugin *plugin, const char *kubelet)
{
	static const struct rpc_receiver receiver = {.done = registered};
	V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;
	V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
	cleanup(bytes_deinit) struct bytes message = {0};
	static char version[] = API_VERSION;

	options.get_preferred_allocation_available = true;
	request.version = version;
	request.endpoint = plugin->endpoint;
	request.resource_name = plugin->config->resource_name;
	request.options = &options;
	int r = codec_encode(&message, &request.base);
	if (r < 0)
		return r;
	return rpc_request_new(&plugin->registering, plugin->rpc, kubelet,
			       "/" API_VERSION ".Registration/Register", message.data, message.size,
			       REGISTER_MS, &receiver, plugin);
}

static void changed(struct loop_watch *watch, const struct inotify_event *event)
{
	struct plugin *plugin = container_of(watch, struct plugin, watch);
	const char *name = event->len ? event->name : "";

	if (event->mask & IN_IGNORED) {
		loop_watch_deinit(&plugin->watch);
		plugin->watching = false;
		log_warning("%s is gone", plugin->config->plugin_dir);
	} else if (event->mask & (IN_CREATE | IN_MOVED_TO)) {
		if (strcmp(name, KUBELET_SOCKET) != 0)
			return;
		log_info("the kubelet started");
	} else {
		if (!plugin->server || strcmp(name, plugin->endpoint) != 0)
			return;
		log_info("the kubelet removed our socket");
	}
	let_go(plugin);
	plugin->pause = PAUSE_MIN;
	look_in(plugin, SETTLE);
}

/* Checks the state and takes the next step. False: failed, after a complaint. */
static bool take_step(struct plugin *plugin)
{
	const char *dir = plugin->config->plugin_dir;
	char kubelet[RPC_PATH_MAX];
	int r;

	if (plugin->registered) {
		complain(plugin, "the kubelet opens no ListAndWatch stream; registering again");
		let_go(plugin);
	}
	if (!plugin->watching) {
		r = loop_watch_init(&plugin->watch, plugin->loop, dir,
				    IN_CREATE | IN_MOVED_TO | IN_DELETE, changed);
		plugin->watching = r == 0;
		if (r < 0)
			return complain(plugin, "%s: %s%s", dir, strerror(-r),
					r == -ENOENT ? "; is a kubelet installed here?"
						     : loop_watch_hint(r));
	}
	if (!plugin->server && (r = serve(plugin)) < 0)
		return complain(plugin, "cannot listen in %s: %s", dir, strerror(-r));
	if (path_of(kubelet, plugin, KUBELET_SOCKET) < 0 || access(kubelet, F_OK) < 0)
		return complain(plugin, "no kubelet at %s; waiting for it", kubelet);
	r = register_with_kubelet(plugin, kubelet);
	return r == 0 || complain(plugin, "cannot call the kubelet: %s", strerror(-r));
}

static void look(struct loop_timer *timer)
{
	struct plugin *plugin = container_of(timer, struct plugin, timer);

	if (!take_step(plugin))
		look_later(plugin);
}

static void watched(struct service *service)
{
	struct plugin *plugin = container_of(service, struct plugin, service);

	log_info("the kubelet watches %u GPUs", plugin->inventory.node.n_gpus);
	plugin->watched_since = loop_now();
	if (plugin->registered)
		loop_timer_clear(&plugin->timer);
}

static void unwatched(struct service *service)
{
	struct plugin *plugin = container_of(service, struct plugin, service);

	if (loop_now() - plugin->watched_since >= STREAM_LONG)
		plugin->pause = PAUSE_MIN;
	log_warning("the kubelet ended its stream; registering again in %llu s",
		    (unsigned long long)(plugin->pause / NS_PER_S));
	let_go(plugin);
	look_later(plugin);
}

/* Before the first container: runtimes read the file before they start one. */
static void name_gpus(const struct plugin *plugin)
{
	char error[SERVICE_ERROR_MAX];

	if (!service_name_gpus(&plugin->service, error))
		log_warning("%s", error);
}

static void inventory_changed(struct inventory *inventory)
{
	struct plugin *plugin = container_of(inventory, struct plugin, inventory);

	name_gpus(plugin);
	service_push(&plugin->service);
	if (plugin->config->dra.enabled)
		dra_look(&plugin->dra);
}

/* Shares that a claim had, and that the configuration has since given to the resource. */
static void claims_ended(struct dra *dra)
{
	struct plugin *plugin = container_of(dra, struct plugin, dra);

	if (plugin->service.cut)
		service_push(&plugin->service);
}

static int start_dra(struct plugin *plugin)
{
	if (!plugin->config->dra.enabled)
		return 0;
	plugin->service.claims = &plugin->dra.ledger.claims;
	return dra_init(&plugin->dra, plugin->loop, plugin->rpc, plugin->config, &plugin->driver,
			&plugin->inventory, claims_ended);
}

int plugin_init(struct plugin *plugin, struct loop *loop, const struct config *config,
		const struct inventory *before)
{
	*plugin = (struct plugin){.config = config, .loop = loop, .pause = PAUSE_MIN};
	plugin->service = (struct service){.config = config,
					   .driver = &plugin->driver,
					   .inventory = &plugin->inventory,
					   .watched = watched,
					   .unwatched = unwatched};

	int r = driver_init(&plugin->driver, config);
	if (r < 0)
		return r;
	if (!plugin->driver.libraries)
		log_warning("no libcuda.so.1 under %s%s", config->node_root, config->driver.root);
	r = inventory_init(&plugin->inventory, loop, config, driver_nvml(&plugin->driver, config),
			   inventory_changed, before);
	if (r == 0)
		name_gpus(plugin);
	if (r == 0)
		r = rpc_new(&plugin->rpc, loop);
	if (r == 0)
		r = start_dra(plugin);
	if (r == 0)
		r = loop_timer_init(&plugin->timer, loop, look);
	if (r < 0) {
		plugin_deinit(plugin);
		return r;
	}
	look_in(plugin, 0);
	return 0;
}

void plugin_deinit(struct plugin *plugin)
{
	let_go(plugin);
	http_free(take(plugin->http));
	dra_deinit(&plugin->dra);
	loop_timer_deinit(&plugin->timer);
	loop_watch_deinit(&plugin->watch);
	plugin->rpc = rpc_free(plugin->rpc);
	inventory_deinit(&plugin->inventory);
	driver_deinit(&plugin->driver);
}
