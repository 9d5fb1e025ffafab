/* Every function of weir/loop.cuh, once, for architectures.sh. It is compiled, not run. */
#include <weir/loop.cuh>

using weir::loop;

namespace {

/* The callback of all: counts results. */
struct counted {
	unsigned long long *out;

	__device__ void operator()(loop &, int64_t result) const
	{
		if (threadIdx.x == 0)
			atomicAdd(out, static_cast<unsigned long long>(result));
	}
};

__device__ void network(loop &l, void *buffer, counted then)
{
	weir::net::listen(l, "127.0.0.1:0", 8, [=](loop &open, int64_t listener) {
		weir::net::accept(open, static_cast<int>(listener), then);
		weir::net::receive_any(open, static_cast<int>(listener), buffer, 8,
				       [=](loop &got, int64_t, int peer) { weir::net::again(got, peer, then); });
		weir::net::receive_any_all(open, static_cast<int>(listener), buffer, 8,
					   [=](loop &got, int64_t, int peer) { weir::net::again(got, peer, then); });
	});
	weir::net::listen(l, "unix:/tmp/listener", 8, 16, then);
	weir::net::connect(l, "unix:/tmp/every", [=](loop &open, int64_t peer) {
		weir::net::send(open, static_cast<int>(peer), buffer, 8, then);
		weir::net::receive(open, static_cast<int>(peer), buffer, 8, then);
		weir::net::receive_all(open, static_cast<int>(peer), buffer, 8, then);
		weir::net::close(open, static_cast<int>(peer), then);
	});
}

__device__ void files(loop &l, void *buffer, counted then)
{
	weir::file::open(l, "/tmp/every", 0, 0, [=](loop &open, int64_t file) {
		int handle = static_cast<int>(file);
		weir::file::read(open, handle, buffer, 8, 0, then);
		weir::file::write(open, handle, buffer, 8, 0, then);
		weir::file::fsync(open, handle, then);
		weir::file::size(open, handle, then);
		weir::file::close(open, handle, then);
	});
}

__device__ void requests(loop &l, counted then)
{
	weir_loop_request timer = {WEIR_LOOP_TIMER, WEIR_LOOP_NO_SLOT, -1, 0, 0, 0, 1000, {}};

	l.request(timer, nullptr, [=](loop &later, int64_t) { then(later, static_cast<int64_t>(later.value())); });
	l.request_with(timer, nullptr, 0, nullptr, then);
}

__device__ void points(loop &l, uint32_t *ticket, counted then)
{
	for (int64_t i = 0; i < 8; i++) {
		if (l.post_task_if_necessary([=](loop &later) { then(later, i); }))
			return;
		if (l.yield_if_needed([=](loop &leaving) {
			    leaving.post_task([=](loop &later) { then(later, i); });
		    }))
			return;
	}
	weir::each_block(
		l, ticket, 8, [=](loop &each, uint32_t n) { then(each, n); }, [](loop &last) { last.exit(0); });
}

} // namespace

extern "C" __global__ void every(weir::loop_args args, unsigned long long *out, uint32_t *ticket, void *buffer)
{
	loop main(args);
	counted then = {out};

	main.run([=](loop &l) {
		files(l, buffer, then);
		network(l, buffer, then);
		requests(l, then);
		weir::timer::after(l, 1000, then);
		weir::host::call(l, 0, buffer, 8, then);
		if (l.has_room())
			l.post_task([=](loop &later) { points(later, ticket, then); });
	});
}

/* Kernels without callbacks. */
extern "C" __global__ void every_block(weir::loop_args args, uint32_t *ticket, uint32_t *at)
{
	loop main(args);

	main.run_each_block(ticket, 8, [=](loop &l, uint32_t n) {
		for (uint32_t i = at[n]; i < 64; i++) {
			at[n] = i;
			if (l.warp_must_leave())
				return false;
		}
		return true;
	});
}

extern "C" __global__ void every_block_saved(weir::loop_args args, uint32_t *ticket, uint32_t *sums)
{
	loop main(args);
	uint32_t sum = 0;

	main.run_each_block<4>(
		ticket, 8, [&](loop &, uint32_t n) { sum += n; }, [&] { sums[threadIdx.x] += sum; });
}
