/* Shared by sort.cu and its host. */
#pragma once

#define SCAN_THREADS 256
#define SCAN_EACH    4
#define SCAN_TILE    (SCAN_THREADS * SCAN_EACH)

#define RADIX_BITS    4
#define RADIX_DIGITS  (1 << RADIX_BITS)
#define RADIX_THREADS 256
#define RADIX_TILE    1024

#define BUCKET_MEAN    256
#define BUCKET_MOST    1024 /* keys of a bucket */
#define BUCKET_THREADS 128
#define BUCKET_PASS    256 /* threads that count and scatter keys */
