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
extern "C" __global__ void copy_file(weir::loop_args args, uint64_t *out, const char *text,
				     uint64_t part)
{
	loop main(args);
	main.run([=](loop &l) {
		if (blockIdx.x)
			return;
		weir::file::open(l, text, 0, 0, [=](loop &opened, int64_t from) {
			if (from < 0) {
				set(out, from);
				return;
			}
			weir::file::size(opened, static_cast<int>(from),
					 [=](loop &, int64_t size) { set(out + 1, size); });
			weir::file::open(opened, text + 256, 01 | 0100 | 01000, 0600,
					 [=](loop &both, int64_t to) {
						 if (to < 0)
							 set(out, to);
						 else
							 copy_part(both, out, static_cast<int>(from),
								   static_cast<int>(to), 0, part);
					 });
		});
	});
}
