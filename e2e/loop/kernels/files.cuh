/* Files. */
#pragma once

#include "out.cuh"

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

__device__ void run_copy(const weir::loop_args &args, uint64_t *out, const char *text, uint64_t part, int flags)
{
	loop main(args);
	main.run([=](loop &l) {
		if (blockIdx.x == 0)
			copy_all(l, out, text, part, flags);
	});
}
} // namespace
extern "C" __global__ void copy_file(weir::loop_args args, uint64_t *out, const char *text,
				     uint64_t part)
{
	run_copy(args, out, text, part, 0);
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
	run_copy(args, out, text, part, 040000);
}
