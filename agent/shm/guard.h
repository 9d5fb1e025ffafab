/* Descriptors of demand pages that clients may write but not misuse. A client with a plain writable
 * descriptor could cut the file short or punch the page out of it, and every other client of the
 * GPU would fault on it, or go on with a page that nobody else sees.
 *
 * Against cutting: the descriptor is opened by a thread under a Landlock rule that denies it; the
 * kernel keeps the denial with the descriptor, wherever it goes. Against punching holes, and
 * opening the file again by /proc/self/fd without that denial: the file is immutable while it is in
 * use. (Only on tmpfs: elsewhere an immutable file's mapping cannot be written either.)
 *
 * Where the kernel or our capabilities do not allow these, one warning says so, and we go on. */
#pragma once

/* Like openat(O_RDWR | O_NOFOLLOW | O_CLOEXEC), never to be truncated. A descriptor or a negative
 * errno. */
int guard_open(int folder, const char *name);
/* @fd: any descriptor of the file. Guards are taken off before the file is opened or removed. */
void guard_on(int fd);
void guard_off(int fd);
