/* Loops for the tests. What they find goes to out[]; the blocks add up, unless only one has a say. */
#include <weir/loop.cuh>

using weir::loop;

namespace {

__device__ void add(uint64_t *out, uint64_t value)
{
	if (threadIdx.x == 0)
		atomicAdd(reinterpret_cast<unsigned long long *>(out), value);
}

__device__ void set(uint64_t *out, int64_t value)
{
	if (threadIdx.x == 0)
		*out = static_cast<uint64_t>(value);
}

/* Runs itself @n times more. */
__device__ void count_down(loop &l, uint64_t *out, uint64_t n)
{
	add(out, 1);
	if (n)
		l.post_task([=](loop &later) { count_down(later, out, n - 1); });
}

} // namespace

/* out[0]: tasks that ran. */
extern "C" __global__ void tasks(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) { count_down(l, out, n); });
}

/* As many callbacks as there is room for. out[0]: that ran; out[1]: that were refused; out[2]: the
 * order in which they ran, a digit each. */
extern "C" __global__ void spill(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) {
		for (uint64_t i = 1; i <= n; i++) {
			int r = l.post_task([=](loop &) {
				add(out, 1);
				if (threadIdx.x == 0)
					out[2] = out[2] * 10 + i;
			});
			if (r == -ENOBUFS)
				add(out + 1, 1);
		}
	});
}

/* Takes all slots, and then comes to n scheduling points. out[0]: points; out[1]: callbacks of the
 * slots; out[2]: those of the points. */
extern "C" __global__ void crowded(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) {
		while (l.has_room())
			l.post_task([=](loop &) { add(out + 1, 1); });
		for (uint64_t i = 0; i < n; i++) {
			add(out, 1);
			if (l.post_task_if_necessary([=](loop &) { add(out + 2, 1); }))
				return;
		}
	});
}

/* out[0]: iterations of all blocks; out[1]: times that a block returned to the loop. */
namespace {
__device__ void spin(loop &l, uint64_t *out, uint64_t i, uint64_t n)
{
	for (; i < n; i++) {
		add(out, 1);
		if (l.post_task_if_necessary([=](loop &later) {
			    add(out + 1, 1);
			    spin(later, out, i + 1, n);
		    }))
			return;
	}
}
} // namespace
extern "C" __global__ void spinner(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) { spin(l, out, 0, n); });
}

/* Copies the file at @text to the file at @text + 256, in parts of n bytes. out[0]: bytes, or an
 * error; out[1]: its size. The buffer is behind out[64]. */
namespace {
__device__ void copy_part(loop &l, uint64_t *out, int from, int to, uint64_t at, uint64_t part)
{
	void *buffer = out + 64;

	weir::file::read(l, from, buffer, part, at, [=](loop &read, int64_t got) {
		if (got <= 0) {
			set(out, got < 0 ? got : static_cast<int64_t>(at));
			weir::file::fsync(read, to, [=](loop &synced, int64_t r) {
				set(out + 2, r);
				weir::close(synced, from, [](loop &, int64_t) {});
				weir::close(synced, to, [](loop &, int64_t) {});
			});
			return;
		}
		weir::file::write(read, to, buffer, static_cast<uint64_t>(got), at,
				  [=](loop &written, int64_t put) {
					  if (put == got)
						  copy_part(written, out, from, to,
							    at + static_cast<uint64_t>(got), part);
					  else
						  set(out, put);
				  });
	});
}
} // namespace
namespace {
__device__ void copy_all(loop &l, uint64_t *out, const char *text, uint64_t part, int flags)
{
	weir::file::open(l, text, flags, 0, [=](loop &opened, int64_t from) {
		if (from < 0) {
			set(out, from);
			return;
		}
		weir::file::size(opened, static_cast<int>(from),
				 [=](loop &, int64_t size) { set(out + 1, size); });
		weir::file::open(opened, text + 256, 01 | 0100 | 01000 | flags, 0600,
				 [=](loop &both, int64_t to) {
					 if (to < 0)
						 set(out, to);
					 else
						 copy_part(both, out, static_cast<int>(from),
							   static_cast<int>(to), 0, part);
				 });
	});
}
} // namespace
extern "C" __global__ void copy_file(weir::loop_args args, uint64_t *out, const char *text,
				     uint64_t part)
{
	loop main(args);
	main.run([=](loop &l) {
		if (blockIdx.x == 0)
			copy_all(l, out, text, part, 0);
	});
}
/* Reads four parts of n bytes of the file at @text, and closes it at once. out[0]: bytes; out[1]:
 * reads that failed; out[2]: what the close says. Behind the file's end the close cancels them. The parts are behind out[64]. */
extern "C" __global__ void read_parts(weir::loop_args args, uint64_t *out, const char *text,
				      uint64_t part)
{
	loop main(args);
	main.run([=](loop &l) {
		if (blockIdx.x)
			return;
		weir::file::open(l, text, 0, 0, [=](loop &opened, int64_t file) {
			char *to = reinterpret_cast<char *>(out + 64);

			for (uint64_t i = 0; i < 4; i++)
				weir::file::read(opened, static_cast<int>(file), to + i * part,
						 part, i * part, [=](loop &, int64_t got) {
							 if (got >= 0)
								 add(out, static_cast<uint64_t>(got));
							 else if (got != -ECANCELED)
								 add(out + 1, 1);
						 });
			weir::close(opened, static_cast<int>(file),
				    [=](loop &, int64_t r) { set(out + 2, r); });
		});
	});
}
/* copy_file() around the page cache: O_DIRECT of x86. */
extern "C" __global__ void copy_direct(weir::loop_args args, uint64_t *out, const char *text,
				       uint64_t part)
{
	loop main(args);
	main.run([=](loop &l) {
		if (blockIdx.x == 0)
			copy_all(l, out, text, part, 040000);
	});
}

/* Block 0 listens at @text; all blocks answer its connections until n have ended. out[0]: connections;
 * out[1]: bytes; out[2]: the listener; out[3]: it is open. */
namespace {
__device__ void answer(loop &l, uint64_t *out, int listener, uint64_t n)
{
	uint8_t *buffer = reinterpret_cast<uint8_t *>(out + 64) + (blockIdx.x << 20);

	weir::net::receive_any(l, listener, buffer, 1 << 20, [=](loop &got, int64_t size, int peer) {
		if (size == -ECANCELED || size == -EBADF) /* another block has closed it */
			return;
		if (size <= 0) {
			add(out, 1);
			__syncthreads();
			if (weir::detail::peek(out) >= n)
				weir::close(got, listener, [](loop &, int64_t) {});
			else
				answer(got, out, listener, n);
			return;
		}
		for (uint32_t i = threadIdx.x; i < size; i += blockDim.x)
			buffer[i] ^= 0x20;
		add(out + 1, static_cast<uint64_t>(size));
		weir::net::send(got, peer, buffer, static_cast<uint64_t>(size),
				[=](loop &sent, int64_t) { answer(sent, out, listener, n); });
	});
}
__device__ void await_listener(loop &l, uint64_t *out, uint64_t n)
{
	__syncthreads();
	bool open = weir::detail::peek(out + 3) != 0;
	__syncthreads();
	if (open)
		answer(l, out, static_cast<int>(weir::detail::peek(out + 2)), n);
	else
		weir::timer::after(l, 1000000, [=](loop &later, int64_t) {
			await_listener(later, out, n);
		});
}
} // namespace
extern "C" __global__ void server(weir::loop_args args, uint64_t *out, const char *text, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) {
		if (blockIdx.x) {
			await_listener(l, out, n);
			return;
		}
		weir::net::listen(l, text, 4096, [=](loop &open, int64_t file) {
			set(out + 2, file);
			__threadfence();
			set(out + 3, 1);
			if (file >= 0)
				answer(open, out, static_cast<int>(file), n);
		});
	});
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

/* Three timers of n, 2 n and 3 n ns, set in another order. out[0]: which came, a bit each; out[1]: sum
 * of their results; out[2]: that came too early. */
extern "C" __global__ void timers(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) {
		uint64_t set_at = weir::detail::now();
		for (uint64_t k = 0; k < 3; k++) {
			uint64_t i = (k + 1) % 3 + 1;
			weir::timer::after(l, i * n, [=](loop &, int64_t r) {
				if (threadIdx.x == 0) {
					out[0] |= 1 << i;
					out[1] += static_cast<uint64_t>(r);
					out[2] += weir::detail::now() - set_at < i * n;
				}
			});
		}
	});
}

/* Calls function n with 1..5 in 40 bytes; out[0]: its result; out[8..12]: the bytes afterwards. */
extern "C" __global__ void calls(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) {
		if (threadIdx.x < 5)
			out[8 + threadIdx.x] = threadIdx.x + 1;
		__syncthreads();
		weir::host::call(l, static_cast<uint32_t>(n), out + 8, 40,
				 [=](loop &, int64_t r) { set(out, r); });
	});
}

/* Block 0 ends the loop with code n, while the others wait for a timer of an hour. */
extern "C" __global__ void exits(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) {
		weir::timer::after(l, 3600000000000ull, [=](loop &, int64_t) { add(out, 1); });
		if (blockIdx.x == 0)
			l.post_task([=](loop &last) { last.exit(static_cast<int>(n)); });
	});
}

/* Sums 0..n-1 in each thread, with sums saved where the block must leave. out[0]: sum over threads;
 * out[1]: times that it was saved. */
namespace {
__device__ void sum_up(loop &l, uint64_t *out, uint64_t i, uint64_t n, uint64_t sum)
{
	uint64_t *saved = out + 64 + blockIdx.x * blockDim.x + threadIdx.x;

	for (; i < n; i++) {
		sum += i;
		if (l.yield_if_needed([&](loop &leaving) {
			    *saved = sum;
			    add(out + 1, 1);
			    uint64_t next = i + 1;
			    leaving.post_task([=](loop &back) {
				    sum_up(back, out, next, n, out[64 + blockIdx.x * blockDim.x + threadIdx.x]);
			    });
		    }))
			return;
	}
	atomicAdd(reinterpret_cast<unsigned long long *>(out), sum);
}
} // namespace
extern "C" __global__ void sums(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) { sum_up(l, out, 0, n, 0); });
}

/* n logical blocks on those of the loop. out[0]: that ran; out[1]: sum of their numbers; out[2]: a
 * ticket; out[3]: blocks of the loop that are done. */
namespace {
template <uint32_t Chunk> __device__ void share_out(const weir::loop_args &args, uint64_t *out, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) {
		weir::each_block<Chunk>(
			l, reinterpret_cast<uint32_t *>(out + 2), static_cast<uint32_t>(n),
			[=](loop &, uint32_t i) {
				add(out, 1);
				add(out + 1, i);
			},
			[=](loop &) { add(out + 3, 1); });
	});
}
} // namespace
extern "C" __global__ void shared_out(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	share_out<1>(args, out, n);
}
extern "C" __global__ void shared_out_by_four(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	share_out<4>(args, out, n);
}
/* The same without callbacks, and so without out[3]. */
extern "C" __global__ void shared_out_alone(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run_each_block<4>(reinterpret_cast<uint32_t *>(out + 2), static_cast<uint32_t>(n), [=](loop &, uint32_t i) {
		add(out, 1);
		add(out + 1, i);
	});
}

/* Never comes to a scheduling point. out[0]: counts. */
extern "C" __global__ void monopolist(weir::loop_args args, uint64_t *out, const char *, uint64_t)
{
	loop main(args);
	main.run([=](loop &) {
		for (uint64_t i = 1; blockIdx.x == 0 && threadIdx.x == 0; i++)
			*static_cast<volatile uint64_t *>(out) = i;
		__syncthreads();
	});
}

/* What a scheduling point costs: n of them, in each block. out[0]: ns of block 0. */
namespace {
__device__ void end_points(uint64_t *out, uint64_t began)
{
	if (blockIdx.x == 0)
		set(out, static_cast<int64_t>(weir::detail::now() - began));
}
template <class Body> __device__ void post_points(loop &l, uint64_t *out, uint64_t began, uint64_t left, Body body)
{
	body();
	if (left)
		l.post_task([=](loop &later) { post_points(later, out, began, left - 1, body); });
	else
		end_points(out, began);
}
__device__ void look_points(loop &l, uint64_t *out, uint64_t began, uint64_t left)
{
	for (; left; left--)
		if (l.post_task_if_necessary(
			    [=](loop &later) { look_points(later, out, began, left - 1); }))
			return;
	end_points(out, began);
}
} // namespace
extern "C" __global__ void points_post(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) { post_points(l, out, weir::detail::now(), n, [] {}); });
}
extern "C" __global__ void points_look(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) { look_points(l, out, weir::detail::now(), n); });
}
/* Tasks that do something: all blocks count in one word. */
extern "C" __global__ void points_task(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) {
		post_points(l, out, weir::detail::now(), n, [=] { add(out + 8, 1); });
	});
}
/* What these do, and a barrier, without tasks. */
extern "C" __global__ void points_body(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &) {
		uint64_t began = weir::detail::now();
		for (uint64_t i = 0; i < n; i++) {
			add(out + 8, 1);
			__syncthreads();
		}
		end_points(out, began);
	});
}
/* The same by launches, which pass the state in device memory. */
extern "C" __global__ void points_split(uint64_t *out)
{
	if (blockIdx.x == 0)
		add(out, 1);
}

/* What one point costs. Of block 0: out[0]: ns of all n; out[1]: cycles of all; out[2], out[3]: of the
 * quickest and of the slowest. */
namespace {
struct turns {
	uint64_t began, first, last, least, most;
};
__device__ turns begin_turns()
{
	return {weir::detail::now(), 0, 0, ~0ull, 0};
}
__device__ void turn(turns *t)
{
	uint64_t cycles = static_cast<uint64_t>(clock64()), took = cycles - t->last;

	if (!t->last) {
		t->first = t->last = cycles;
		return;
	}
	t->least = took < t->least ? took : t->least;
	t->most = took > t->most ? took : t->most;
	t->last = cycles;
}
__device__ void end_turns(uint64_t *out, const turns &t)
{
	end_points(out, t.began);
	if (blockIdx.x != 0)
		return;
	set(out + 1, static_cast<int64_t>(t.last - t.first));
	set(out + 2, static_cast<int64_t>(t.least));
	set(out + 3, static_cast<int64_t>(t.most));
}
__device__ void post_turns(loop &l, uint64_t *out, turns t, uint64_t left)
{
	turn(&t);
	if (left)
		l.post_task([=](loop &later) { post_turns(later, out, t, left - 1); });
	else
		end_turns(out, t);
}
__device__ void look_turns(loop &l, uint64_t *out, turns t, uint64_t left)
{
	for (; left; left--) {
		turn(&t);
		if (l.post_task_if_necessary([=](loop &later) { look_turns(later, out, t, left - 1); }))
			return;
	}
	end_turns(out, t);
}
} // namespace
extern "C" __global__ void turns_post(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) { post_turns(l, out, begin_turns(), n); });
}
extern "C" __global__ void turns_look(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) { look_turns(l, out, begin_turns(), n); });
}

/* n round trips to the host and back, one after the other. out[0]: ns. */
namespace {
__device__ void trip(loop &l, uint64_t *out, uint64_t began, uint64_t left)
{
	if (left)
		weir::timer::after(l, 0, [=](loop &later, int64_t) {
			trip(later, out, began, left - 1);
		});
	else
		set(out, static_cast<int64_t>(weir::detail::now() - began));
}
} // namespace
extern "C" __global__ void round_trips(weir::loop_args args, uint64_t *out, const char *, uint64_t n)
{
	loop main(args);
	main.run([=](loop &l) {
		if (blockIdx.x == 0)
			trip(l, out, weir::detail::now(), n);
	});
}
