/* Shared by count.cu and its host. */
#pragma once

#define HISTOGRAM_BINS    256
#define HISTOGRAM_WARPS   6
#define HISTOGRAM_THREADS (32 * HISTOGRAM_WARPS)
#define MERGE_THREADS     128

#define ANGLE_BINS    32
#define ANGLE_THREADS 128
#define ANGLE_SEGMENT 1024 /* points with which a block compares its own */
