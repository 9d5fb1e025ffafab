/* What cluster.cu and its host share. */
#pragma once

#define FEATURES        32
#define CENTRES         5
#define CLUSTER_THREADS 256
