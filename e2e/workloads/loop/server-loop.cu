/* Servers that answer on the GPU: each block listens, receives, computes and sends by itself. A slot
 * is one request under way: receive, answer, send, and again. */
#include "block.cuh"
#include "server-loop.h"
#include "services.cuh"

#define BACKLOG 1024

/* A request and its reply, in device memory. */
struct slot {
	server_loop *server;
	int listener;
	uint8_t *request, *reply;
};

/* How a service answers; as a callback may have to, in steps. Calls answered() at the end. */
struct echo_service {
	static __device__ void answer(weir::loop &l, slot at, int connection);
};
struct matmul_service {
	static __device__ void answer(weir::loop &l, slot at, int connection);
};
struct kv_service {
	static __device__ void answer(weir::loop &l, slot at, int connection);
};

template <class Service> static __device__ void serve(weir::loop &l, slot at)
{
	unsigned bytes = at.server->request_bytes;

	weir::net::receive_any_all(
		l, at.listener, at.request, bytes, [=](weir::loop &later, int64_t n, int connection) {
			if (n == bytes)
				Service::answer(later, at, connection);
			else if (n > 0)
				weir::net::close(later, connection,
						 [=](weir::loop &last, int64_t) { serve<Service>(last, at); });
			else
				serve<Service>(later, at);
		});
}

template <class Service> static __device__ void answered(weir::loop &l, slot at, int connection)
{
	if (threadIdx.x == 0)
		atomicAdd(&at.server->answered, 1ull);
	weir::net::send(l, connection, at.reply, at.server->reply_bytes,
			[=](weir::loop &later, int64_t) { serve<Service>(later, at); });
}

__device__ void echo_service::answer(weir::loop &l, slot at, int connection)
{
	services::echo(at.server->size, at.request, at.reply);
	answered<echo_service>(l, at, connection);
}

__device__ void kv_service::answer(weir::loop &l, slot at, int connection)
{
	services::kv(reinterpret_cast<kv_slot *>(at.server->table), reinterpret_cast<kv_message *>(at.request),
		     reinterpret_cast<kv_message *>(at.reply));
	answered<kv_service>(l, at, connection);
}

/* A tile at a time: the kernel may leave between two of them. */
static __device__ void multiply_from(weir::loop &l, slot at, int connection, unsigned tile)
{
	unsigned n = at.server->size;
	const float *a = reinterpret_cast<const float *>(at.request);

	for (; tile < services::matmul_tiles(n); tile++) {
		services::multiply_tile(n, a, a + size_t(n) * n, reinterpret_cast<float *>(at.reply), tile);
		if (l.post_task_if_necessary(
			    [=](weir::loop &later) { multiply_from(later, at, connection, tile + 1); }))
			return;
	}
	__syncthreads();
	answered<matmul_service>(l, at, connection);
}

__device__ void matmul_service::answer(weir::loop &l, slot at, int connection)
{
	multiply_from(l, at, connection, 0);
}

/* Requests go to slots in the order in which these asked. So first one slot of each block asks, then the
 * next one: a few connections are then served by as many blocks. */
template <class Service>
static __device__ void begin(weir::loop &l, server_loop *server, int listener, unsigned i = 0)
{
	size_t number = size_t(blockIdx.x) * server->slots + i;
	slot at = {server, listener,
		   reinterpret_cast<uint8_t *>(server->requests) + number * server->request_bytes,
		   reinterpret_cast<uint8_t *>(server->replies) + number * server->reply_bytes};

	serve<Service>(l, at);
	if (i + 1 == server->slots)
		return;
	l.post_task([=](weir::loop &later) {
		__nanosleep(10 * LOOK_NS); /* all blocks have begun */
		begin<Service>(later, server, listener, i + 1);
	});
}

template <class Service> static __device__ void run_server(const weir::loop_args &args, server_loop *server)
{
	weir::loop loop(args);

	loop.run([=](weir::loop &l) {
		if (blockIdx.x != 0) {
			when_known(l, &server->listener, [=](weir::loop &later, int32_t listener) {
				begin<Service>(later, server, listener);
			});
			return;
		}
		/* A request that comes in pieces keeps its slot only if it is a long one. */
		unsigned bytes = server->request_bytes, least = bytes <= WEIR_LOOP_INLINE ? bytes : 1;

		weir::net::listen(l, server->address, BACKLOG, least, [=](weir::loop &later, int64_t listener) {
			if (!is_good(later, listener))
				return;
			make_known(&server->listener, static_cast<int32_t>(listener));
			begin<Service>(later, server, static_cast<int>(listener));
		});
	});
}

extern "C" __global__ void echo_loop(weir::loop_args args, server_loop *server)
{
	run_server<echo_service>(args, server);
}

extern "C" __global__ void matmul_loop(weir::loop_args args, server_loop *server)
{
	run_server<matmul_service>(args, server);
}

extern "C" __global__ void kv_loop(weir::loop_args args, server_loop *server)
{
	run_server<kv_service>(args, server);
}
