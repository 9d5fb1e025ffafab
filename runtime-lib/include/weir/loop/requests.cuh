/* What a loop asks the host for: files, the network, timers, functions of the program. Each
 * function registers @callback(weir::loop &, int64_t result) and returns 0, or -ENOBUFS. Handles
 * are the loop's own: small numbers, not descriptors of the process. */
#pragma once

#include "weir/loop/run.cuh"

namespace weir
{

namespace detail
{

inline __device__ uint64_t length(const char *text)
{
	uint64_t n = 0;

	while (n < WEIR_LOOP_INLINE && text[n])
		n++;
	return n;
}

/* Requests about bytes in device memory. */
template <class F>
inline __device__ int fetch(loop &l, uint16_t op, int file, void *to, uint64_t size,
			    uint64_t offset, F callback, bool all = false)
{
	weir_loop_request request = {
		op, WEIR_LOOP_NO_SLOT, file, offset, reinterpret_cast<uint64_t>(to), size, all, {}};

	return l.request(request, to, callback);
}
template <class F>
inline __device__ int put(loop &l, uint16_t op, int file, const void *from, uint64_t size,
			  uint64_t offset, F callback)
{
	weir_loop_request request = {
		op, WEIR_LOOP_NO_SLOT, file, offset, reinterpret_cast<uint64_t>(from), size, 0, {}};

	return l.request_with(request, from, size <= WEIR_LOOP_INLINE ? size : 0, nullptr,
			      callback);
}
template <class F>
inline __device__ int name(loop &l, uint16_t op, const char *text, uint64_t extra, F callback)
{
	uint64_t size = length(text);
	weir_loop_request request = {op, WEIR_LOOP_NO_SLOT, -1, 0, 0, size, extra, {}};

	return l.request_with(request, text, size, nullptr, callback);
}
template <class F>
inline __device__ int plain(loop &l, uint16_t op, int file, uint64_t extra, F callback)
{
	weir_loop_request request = {op, WEIR_LOOP_NO_SLOT, file, 0, 0, 0, extra, {}};

	return l.request(request, nullptr, callback);
}

} // namespace detail

/* Closes a file, a listener or a connection. Requests of it that wait are answered with -ECANCELED.
 */
template <class F> inline __device__ int close(loop &l, int file, F callback)
{
	return detail::plain(l, WEIR_LOOP_CLOSE, file, 0, callback);
}

namespace file
{

/* Flags and mode are open(2)'s numbers (O_RDONLY 0, O_WRONLY 1, O_RDWR 2, O_CREAT 0100, O_TRUNC
 * 01000 on x86 and arm64). Result: a handle. Paths are the host process's; at most 4095 bytes.
 *
 * O_DIRECT (040000 on x86, 0200000 on arm64): pieces whose offset and size are multiples of 4 KiB go around the
 * page cache, those of more than WEIR_LOOP_INLINE bytes straight to the GPU where the host has libcufile. It is for
 * data that is read once and is not in the page cache; what is there is read quicker without it. Where the file system
 * has no O_DIRECT, or offset or size are others, the flag has no effect. O_APPEND has none either: each write says where. */
template <class F>
inline __device__ int open(loop &l, const char *path, int flags, int mode, F callback)
{
	return detail::name(l, WEIR_LOOP_OPEN, path,
			    static_cast<uint32_t>(flags) | static_cast<uint64_t>(mode) << 32,
			    callback);
}
/* Result: bytes read; fewer than @size at the end of the file, 0 behind it. Up to
 * WEIR_LOOP_PART bytes come over PCIe by the block's own loads, more by a copy engine. At most
 * WEIR_LOOP_SIZE_MAX bytes, else -EINVAL. */
template <class F>
inline __device__ int read(loop &l, int file, void *to, uint64_t size, uint64_t offset, F callback)
{
	return detail::fetch(l, WEIR_LOOP_READ, file, to, size, offset, callback);
}
/* Result: bytes written: all, unless the disk is full or fails. */
template <class F>
inline __device__ int write(loop &l, int file, const void *from, uint64_t size, uint64_t offset,
			    F callback)
{
	return detail::put(l, WEIR_LOOP_WRITE, file, from, size, offset, callback);
}
template <class F> inline __device__ int fsync(loop &l, int file, F callback)
{
	return detail::plain(l, WEIR_LOOP_FSYNC, file, 0, callback);
}
/* Result: bytes. */
template <class F> inline __device__ int size(loop &l, int file, F callback)
{
	return detail::plain(l, WEIR_LOOP_SIZE, file, 0, [=](loop &later, int64_t result) {
		callback(later, result < 0 ? result : static_cast<int64_t>(later.value()));
	});
}
using weir::close;

} // namespace file

namespace net
{

/* An address is "127.0.0.1:80", "[::1]:80" or "unix:/path". No names: there is no resolver. */

/* Result: a listener. Port 0 is any free one; weir_loop_port() tells which. */
template <class F>
inline __device__ int listen(loop &l, const char *address, int backlog, F callback)
{
	return detail::name(l, WEIR_LOOP_LISTEN, address, static_cast<uint32_t>(backlog), callback);
}
/* The same for receive_any() where no message has less than @least bytes: it gets data of a TCP
 * connection only when so many are there, or the other side has closed. So a client that sends a
 * part of a message and stops keeps no callback. At most WEIR_LOOP_INLINE; Unix sockets ignore it. */
template <class F>
inline __device__ int listen(loop &l, const char *address, int backlog, uint32_t least, F callback)
{
	return detail::name(l, WEIR_LOOP_LISTEN, address,
			    static_cast<uint32_t>(backlog) | static_cast<uint64_t>(least) << 32,
			    callback);
}
/* Result: a connection. */
template <class F> inline __device__ int accept(loop &l, int listener, F callback)
{
	return detail::plain(l, WEIR_LOOP_ACCEPT, listener, 0, callback);
}
template <class F> inline __device__ int connect(loop &l, const char *address, F callback)
{
	return detail::name(l, WEIR_LOOP_CONNECT, address, 0, callback);
}
/* Result: bytes, at least 1; 0: the other side has closed. */
template <class F>
inline __device__ int receive(loop &l, int connection, void *to, uint64_t size, F callback)
{
	return detail::fetch(l, WEIR_LOOP_RECEIVE, connection, to, size, 0, callback);
}
/* The same until all @size bytes are there. Result: @size, or fewer: the other side has closed, or
 * the connection has failed; an error if nothing came before. */
template <class F>
inline __device__ int receive_all(loop &l, int connection, void *to, uint64_t size, F callback)
{
	return detail::fetch(l, WEIR_LOOP_RECEIVE, connection, to, size, 0, callback, true);
}
/* Waits for data of any connection of the listener, which accepts by itself: so a few callbacks
 * serve any number of connections. @callback(l, result, connection); result 0 or an error: that
 * connection is over, and closed already. While a callback has a connection, no other gets its
 * data: until the program sends an answer, closes it, or asks again with again(). Do not mix with
 * accept(). */
template <class F>
inline __device__ int receive_any(loop &l, int listener, void *to, uint64_t size, F callback)
{
	return detail::fetch(l, WEIR_LOOP_RECEIVE_ANY, listener, to, size, 0,
			     [=](loop &later, int64_t result) {
				     callback(later, result, static_cast<int>(later.value()));
			     });
}
/* The same for a message of @size bytes: @callback runs when all are there. Result: @size; or fewer,
 * if the other side has closed within the message, and the connection is still the program's. */
template <class F>
inline __device__ int receive_any_all(loop &l, int listener, void *to, uint64_t size, F callback)
{
	return detail::fetch(
		l, WEIR_LOOP_RECEIVE_ANY, listener, to, size, 0,
		[=](loop &later, int64_t result) {
			callback(later, result, static_cast<int>(later.value()));
		},
		true);
}
/* A connection that receive_any() told of: its next data comes to receive_any() again. send() does
 * that, too. */
template <class F> inline __device__ int again(loop &l, int connection, F callback)
{
	return detail::plain(l, WEIR_LOOP_AGAIN, connection, 0, callback);
}
/* Result: bytes: all, unless the connection fails. */
template <class F>
inline __device__ int send(loop &l, int connection, const void *from, uint64_t size, F callback)
{
	return detail::put(l, WEIR_LOOP_SEND, connection, from, size, 0, callback);
}
using weir::close;

} // namespace net

namespace timer
{

/* Result: 0, @ns nanoseconds later, or somewhat more. */
template <class F> inline __device__ int after(loop &l, uint64_t ns, F callback)
{
	return detail::plain(l, WEIR_LOOP_TIMER, -1, ns, callback);
}

} // namespace timer

namespace host
{

/* Calls function @number of weir_loop_options.functions with @size bytes of @data (at most
 * WEIR_LOOP_INLINE), in a thread of the host. Result: what it returns; if that is above 0, so many
 * bytes, which it wrote, are in @data again. */
template <class F>
inline __device__ int call(loop &l, uint32_t number, void *data, uint64_t size, F callback)
{
	weir_loop_request request = {WEIR_LOOP_CALL, WEIR_LOOP_NO_SLOT, -1, 0, 0, size, number, {}};

	return l.request_with(request, data, size <= WEIR_LOOP_INLINE ? size : 0, data, callback);
}

} // namespace host

} // namespace weir
