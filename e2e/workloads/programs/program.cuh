/* What the programs of this folder share: options, rounds, and the one line at the end.
 *
 * A round is the program's whole work from the same input. The program checks each result against
 * the host's. It prints `NAME: right, N rounds, CHECKSUM`; all rounds have the same checksum. A
 * wrong value or a failed call is one line on stderr and exit status 1. */
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <unistd.h>

#define CHECK(call)                                                      \
	do {                                                             \
		cudaError_t error_ = (call);                             \
		if (error_ != cudaSuccess)                               \
			fail("%s:%d: %s: %s", __FILE__, __LINE__, #call, \
			     cudaGetErrorName(error_));                  \
	} while (0)

[[noreturn]] __attribute__((format(printf, 1, 2))) static void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	_exit(1);
}

/* FNV-1a: equal sums, equal bits. */
template <typename T> static uint64_t checksum_of(const std::vector<T> &values)
{
	uint64_t sum = 14695981039346656037u;
	const unsigned char *at = reinterpret_cast<const unsigned char *>(values.data());

	for (size_t i = 0; i < values.size() * sizeof(T); i++)
		sum = (sum ^ at[i]) * 1099511628211u;
	return sum;
}

/* The same numbers on host and device. */
static __host__ __device__ inline uint32_t mixed(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x7feb352du;
	x ^= x >> 15;
	x *= 0x846ca68bu;
	return x ^ x >> 16;
}

/* Device memory for @n values, freed at the end of the scope. */
template <typename T> struct device_array {
	T *data = nullptr;
	size_t n;

	explicit device_array(size_t n) : n(n)
	{
		CHECK(cudaMalloc(&data, n * sizeof(T)));
	}
	device_array(const device_array &) = delete;
	~device_array()
	{
		cudaFree(data);
	}
	void set(const std::vector<T> &from)
	{
		CHECK(cudaMemcpy(data, from.data(), n * sizeof(T), cudaMemcpyHostToDevice));
	}
	std::vector<T> get() const
	{
		std::vector<T> values(n);

		CHECK(cudaMemcpy(values.data(), data, n * sizeof(T), cudaMemcpyDeviceToHost));
		return values;
	}
};

class program
{
      public:
	/* --gpu: sizes for a real GPU. --seconds S: rounds for so long; default: one. --ready-file
	 * F: created when the rounds begin. --stop-file F: no round begins when it is there. */
	program(const char *name, int argc, char **argv) : name(name)
	{
		for (int i = 1; i < argc; i++) {
			std::string option = argv[i];
			const char *value = i + 1 < argc ? argv[i + 1] : nullptr;

			if (option == "--gpu") {
				gpu = true;
				continue;
			}
			if (option == "--seconds" && value)
				seconds = atof(value);
			else if (option == "--ready-file" && value)
				ready_file = value;
			else if (option == "--stop-file" && value)
				stop_file = value;
			else
				usage();
			i++;
		}
	}

	/* @small: for the simulated GPU. */
	unsigned size(unsigned small, unsigned large) const
	{
		return gpu ? large : small;
	}

	/* There is another round to do. */
	bool goes_on()
	{
		if (!rounds++) {
			began = std::chrono::steady_clock::now();
			if (ready_file)
				touch(ready_file);
			return true;
		}
		std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began;

		return passed.count() < seconds && !(stop_file && !access(stop_file, F_OK));
	}

	template <typename T>
	void check(const std::vector<T> &result, const std::vector<T> &expected)
	{
		for (size_t i = 0; i < expected.size(); i++)
			if (result.size() != expected.size() ||
			    memcmp(&result[i], &expected[i], sizeof(T)))
				fail("%s: wrong result, value %zu of %zu in round %u", name, i,
				     expected.size(), rounds);
		sum = checksum_of(expected);
	}

	int right() const
	{
		printf("%s: right, %u rounds, %016llx\n", name, rounds - 1,
		       (unsigned long long)sum);
		return 0;
	}

      private:
	const char *name;
	bool gpu = false;
	double seconds = 0;
	const char *ready_file = nullptr, *stop_file = nullptr;
	unsigned rounds = 0;
	uint64_t sum = 0;
	std::chrono::steady_clock::time_point began;

	static void touch(const char *path)
	{
		FILE *file = fopen(path, "w");

		if (!file)
			fail("%s: %s", path, strerror(errno));
		fclose(file);
	}

	[[noreturn]] void usage() const
	{
		fprintf(stderr,
			"Usage: %s [--gpu] [--seconds S] [--ready-file F] [--stop-file F]\n", name);
		exit(2);
	}
};
