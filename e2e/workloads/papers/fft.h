/* What fft.cu and its host share. */
#pragma once

#define FFT_SIZE    512
#define FFT_THREADS 64
