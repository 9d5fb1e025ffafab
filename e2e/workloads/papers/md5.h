/* MD5 (RFC 1321) of a short key, for the device and the CPU. */
#pragma once

#include "arithmetic.h"

#define KEY_LETTERS 8 /* bytes of a key, each one of KEY_BASE letters from 'a' on */
#define KEY_BASE    16

struct md5 {
	unsigned word[4];
};

/* The words of the message of key number @index, padding and length included: all others are 0. */
BOTH void md5_key(unsigned words[16], unsigned index)
{
	for (unsigned i = 0; i < 16; i++)
		words[i] = 0;
	for (unsigned i = 0; i < KEY_LETTERS; i++, index /= KEY_BASE)
		words[i / 4] |= ('a' + index % KEY_BASE) << (i % 4 * 8);
	words[KEY_LETTERS / 4] = 0x80;
	words[14] = KEY_LETTERS * 8;
}

BOTH unsigned md5_rotate(unsigned x, unsigned by)
{
	return x << by | x >> (32 - by);
}

/* floor(2^32 |sin(i + 1)|) */
#define MD5_SINES                                                                               \
	{                                                                                       \
		0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a,         \
			0xa8304613, 0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, \
			0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, \
			0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8, \
			0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, \
			0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, \
			0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa, \
			0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, \
			0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, \
			0xffeff47d, 0x85845dd1, 0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, \
			0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391                          \
	}
#define MD5_SHIFTS                                                \
	{                                                         \
		{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, \
		{                                                 \
			6, 10, 15, 21                             \
		}                                                 \
	}

BOTH struct md5 md5_of(const unsigned words[16])
{
	const unsigned sines[64] = MD5_SINES, shifts[4][4] = MD5_SHIFTS;
	const struct md5 start = {{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}};
	unsigned a = start.word[0], b = start.word[1], c = start.word[2], d = start.word[3];

#ifdef __CUDACC__
#pragma unroll
#endif
	for (unsigned i = 0; i < 64; i++) {
		unsigned f, from;

		if (i < 16) {
			f = (b & c) | (~b & d);
			from = i;
		} else if (i < 32) {
			f = (d & b) | (~d & c);
			from = (5 * i + 1) % 16;
		} else if (i < 48) {
			f = b ^ c ^ d;
			from = (3 * i + 5) % 16;
		} else {
			f = c ^ (b | ~d);
			from = 7 * i % 16;
		}
		unsigned next =
			b + md5_rotate(a + f + sines[i] + words[from], shifts[i / 16][i % 4]);

		a = d;
		d = c;
		c = b;
		b = next;
	}
	return (struct md5){
		{start.word[0] + a, start.word[1] + b, start.word[2] + c, start.word[3] + d}};
}
