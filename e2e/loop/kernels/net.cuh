/* Sockets. */
#pragma once

#include "out.cuh"

/* Block 0 listens at @text; all blocks answer its connections until n have ended. out[0]: connections;
 * out[1]: bytes; out[2]: the listener; out[3]: it is open. */
namespace {
struct service {
	uint64_t *out, n;
	uint64_t message; /* bytes of each; 0: whatever comes is answered */
	bool frugal;      /* blocks ask for few bytes, each for others */
	bool whole;       /* for whole messages */
	int listener;

	__device__ uint8_t *buffer() const
	{
		return reinterpret_cast<uint8_t *>(out + 64) + (blockIdx.x << 21);
	}
	__device__ uint64_t asks() const
	{
		return whole ? message : !frugal ? 1 << 20 : blockIdx.x % 2 ? 4096 : 16;
	}
};
__device__ void answer(loop &l, service s);

__device__ void reply(loop &l, service s, int peer, uint64_t size)
{
	for (uint32_t i = threadIdx.x; i < size; i += blockDim.x)
		s.buffer()[i] ^= 0x20;
	add(s.out + 1, size);
	weir::net::send(l, peer, s.buffer(), size, [=](loop &sent, int64_t) { answer(sent, s); });
}
__device__ void over(loop &l, service s)
{
	add(s.out, 1);
	__syncthreads();
	if (weir::detail::peek(s.out) >= s.n)
		weir::close(l, s.listener, [](loop &, int64_t) {});
	else
		answer(l, s);
}
__device__ void receive_rest(loop &l, service s, int peer, uint64_t have)
{
	uint64_t rest = s.message - have;

	weir::net::receive_all(l, peer, s.buffer() + have, rest, [=](loop &got, int64_t size) {
		if (size == static_cast<int64_t>(rest))
			reply(got, s, peer, s.message);
		else
			weir::close(got, peer, [=](loop &closed, int64_t) { over(closed, s); });
	});
}
__device__ void answer(loop &l, service s)
{
	auto then = [=](loop &got, int64_t size, int peer) {
		if (size == -ECANCELED || size == -EBADF) /* another block has closed it */
			return;
		if (size <= 0)
			over(got, s);
		else if (s.whole && static_cast<uint64_t>(size) < s.message)
			weir::close(got, peer, [=](loop &closed, int64_t) { over(closed, s); });
		else if (s.message && static_cast<uint64_t>(size) < s.message)
			receive_rest(got, s, peer, static_cast<uint64_t>(size));
		else
			reply(got, s, peer, static_cast<uint64_t>(size));
	};

	if (s.whole)
		weir::net::receive_any_all(l, s.listener, s.buffer(), s.asks(), then);
	else
		weir::net::receive_any(l, s.listener, s.buffer(), s.asks(), then);
}
__device__ void await_listener(loop &l, service s)
{
	__syncthreads();
	bool open = weir::detail::peek(s.out + 3) != 0;
	__syncthreads();
	if (open) {
		s.listener = static_cast<int>(weir::detail::peek(s.out + 2));
		answer(l, s);
	} else {
		weir::timer::after(l, 1000000, [=](loop &later, int64_t) { await_listener(later, s); });
	}
}
__device__ void serve(const weir::loop_args &args, const char *text, service s)
{
	loop main(args);
	main.run([=](loop &l) {
		if (blockIdx.x) {
			await_listener(l, s);
			return;
		}
		weir::net::listen(l, text, 4096, [=](loop &open, int64_t file) {
			service open_service = s;

			set(s.out + 2, file);
			__threadfence();
			set(s.out + 3, 1);
			open_service.listener = static_cast<int>(file);
			if (file >= 0)
				answer(open, open_service);
		});
	});
}
} // namespace
extern "C" __global__ void server(weir::loop_args args, uint64_t *out, const char *text, uint64_t n)
{
	serve(args, text, {out, n, 0, false, false, -1});
}
/* The same, a part of what has come at a time. */
extern "C" __global__ void frugal_server(weir::loop_args args, uint64_t *out, const char *text, uint64_t n)
{
	serve(args, text, {out, n, 0, true, false, -1});
}
/* Of messages of n >> 16 bytes: begins with a part, and waits for the rest. */
extern "C" __global__ void rest_server(weir::loop_args args, uint64_t *out, const char *text, uint64_t n)
{
	serve(args, text, {out, n & 0xffff, n >> 16, true, false, -1});
}
/* The same, by whole messages. */
extern "C" __global__ void whole_server(weir::loop_args args, uint64_t *out, const char *text, uint64_t n)
{
	serve(args, text, {out, n & 0xffff, n >> 16, false, true, -1});
}

/* Listens, connects to itself, and sends @n bytes through a connection in both directions with
 * accept(). out[0]: bytes that came back; out[1]: result of a receive after the end; out[2]: errors. */
namespace {
__device__ void echo_once(loop &l, uint64_t *out, int peer, uint64_t left)
{
	uint8_t *buffer = reinterpret_cast<uint8_t *>(out + 64);

	weir::net::receive(l, peer, buffer, 1 << 20, [=](loop &got, int64_t size) {
		if (size <= 0) {
			add(out + 2, 1);
			return;
		}
		weir::net::send(got, peer, buffer, static_cast<uint64_t>(size), [=](loop &sent, int64_t put) {
			if (put != size)
				add(out + 2, 1);
			if (left > static_cast<uint64_t>(size))
				echo_once(sent, out, peer, left - static_cast<uint64_t>(size));
			else
				weir::close(sent, peer, [](loop &, int64_t) {});
		});
	});
}
/* Half of it, and the other half later. */
__device__ void send_all(loop &l, uint64_t *out, int peer, const uint8_t *source, uint64_t n)
{
	uint64_t half = n - n / 2;

	weir::net::send(l, peer, source, half, [=](loop &sent, int64_t put) {
		if (put != static_cast<int64_t>(half))
			add(out + 2, 1);
		weir::timer::after(sent, 3000000, [=](loop &later, int64_t) {
			weir::net::send(later, peer, source + half, n - half, [=](loop &, int64_t last) {
				if (last != static_cast<int64_t>(n - half))
					add(out + 2, 1);
			});
		});
	});
}
/* A part as it comes, then all of the rest, then what is behind the end. */
__device__ void read_rest(loop &l, uint64_t *out, int peer, uint64_t n, uint64_t have)
{
	uint8_t *buffer = reinterpret_cast<uint8_t *>(out + 64) + (4 << 20);

	weir::net::receive_all(l, peer, buffer + have, n - have, [=](loop &got, int64_t size) {
		uint64_t all = have + static_cast<uint64_t>(size);
		uint32_t wrong = 0;

		for (uint64_t i = threadIdx.x; i < n; i += blockDim.x)
			wrong += buffer[i] != static_cast<uint8_t>(i * 7);
		if (wrong || all != n)
			atomicAdd(reinterpret_cast<unsigned long long *>(out + 2), 100ull);
		set(out, static_cast<int64_t>(all));
		weir::net::receive_all(got, peer, buffer, 64, [=](loop &end, int64_t last) {
			set(out + 1, last);
			weir::close(end, peer, [](loop &, int64_t) {});
		});
	});
}
__device__ void read_back(loop &l, uint64_t *out, int peer, uint64_t n)
{
	uint8_t *buffer = reinterpret_cast<uint8_t *>(out + 64) + (4 << 20);

	weir::net::receive(l, peer, buffer, (n + 2) / 3, [=](loop &got, int64_t size) {
		if (size <= 0)
			add(out + 2, 1);
		else
			read_rest(got, out, peer, n, static_cast<uint64_t>(size));
	});
}
} // namespace
extern "C" __global__ void both_ends(weir::loop_args args, uint64_t *out, const char *text, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) {
		uint8_t *source = reinterpret_cast<uint8_t *>(out + 64) + (2 << 20);
		for (uint64_t i = threadIdx.x; i < n; i += blockDim.x)
			source[i] = static_cast<uint8_t>(i * 7);
		weir::net::listen(l, text, 1, [=](loop &open, int64_t file) {
			int listener = static_cast<int>(file);
			if (file < 0) {
				set(out + 2, file);
				return;
			}
			weir::net::accept(open, listener, [=](loop &accepted, int64_t peer) {
				echo_once(accepted, out, static_cast<int>(peer), n);
				weir::close(accepted, listener, [](loop &, int64_t) {});
			});
			weir::net::connect(open, text, [=](loop &connected, int64_t peer) {
				if (peer < 0) {
					set(out + 2, peer);
					return;
				}
				send_all(connected, out, static_cast<int>(peer), source, n);
				read_back(connected, out, static_cast<int>(peer), n);
			});
		});
	});
}
