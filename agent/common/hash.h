/* The end of a uthash. Elements that leave one by one confuse clang's analyzer. */
#pragma once

#include <uthash.h>

/* Empties the hash @head, and calls @release with each of its elements. */
#define hash_release(head, release)                        \
	do {                                               \
		__typeof__(head) element_ = (head), next_; \
		HASH_CLEAR(hh, head);                      \
		for (; element_; element_ = next_) {       \
			next_ = element_->hh.next;         \
			release(element_);                 \
		}                                          \
	} while (0)
