/* The devices: a small H200 with the machine's number of SMs and amount of memory. */
#include "simcuda/driver/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Attributes that do not depend on the machine; absent ones are 0. An SM runs one block at a time,
 * so a block may use all of it. */
static const int attributes[CU_DEVICE_ATTRIBUTE_MAX] = {
	[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = MAX_THREADS,
	[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X] = 1024,
	[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y] = 1024,
	[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z] = 64,
	[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X] = 0x7fffffff,
	[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y] = 65535,
	[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z] = 65535,
	[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK] = DEFAULT_SHARED,
	[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN] = MAX_SHARED - 1024,
	[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR] = MAX_SHARED,
	[CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK] = 1024,
	[CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY] = 65536,
	[CU_DEVICE_ATTRIBUTE_WARP_SIZE] = 32,
	[CU_DEVICE_ATTRIBUTE_MAX_PITCH] = 0x7fffffff,
	[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK] = 65536,
	[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR] = 65536,
	[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR] = MAX_THREADS,
	[CU_DEVICE_ATTRIBUTE_CLOCK_RATE] = 1980000,
	[CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE] = 3201000,
	[CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH] = 6144,
	[CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE] = 1 << 20,
	[CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT] = 512,
	[CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT] = 32,
	[CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT] = 512,
	[CU_DEVICE_ATTRIBUTE_GPU_OVERLAP] = 1,
	[CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT] = 2,
	[CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY] = 1,
	[CU_DEVICE_ATTRIBUTE_COMPUTE_MODE] = CU_COMPUTEMODE_DEFAULT,
	[CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS] = 1,
	[CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING] = 1,
	[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = 9,
	[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = 0,
	[CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO] = 2,
	[CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM] = 1,
	[CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1] = 1,
	[CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1] = 1,
	[CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1] = 1,
	[CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS] = 1,
	[CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR] = 1,
	[CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES] = 1,
	[CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH] = 1,
	[CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT] = 1,
	[CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS] = 1,
	[CU_DEVICE_ATTRIBUTE_NUMA_ID] = -1,
	[CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID] = 0,
};

CUresult cuDeviceGetCount(int *out)
{
	API_ENTER();

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (int)sim.n_devices;
	return CUDA_SUCCESS;
}

API_TELLS(cuDeviceGet, (OUT(CUdevice), int ordinal), device, d, device_get(&d, ordinal), ordinal)

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	API_ENTER();
	struct device *d;

	RETURN_IF(device_get(&d, dev));
	if (!name || len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(name, (size_t)len, "%s", MACHINE_GPU_NAME);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	API_ENTER();
	struct device *d;

	RETURN_IF(device_get(&d, dev));
	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	machine_uuid(d->gpu, (uint8_t *)uuid->bytes);
	return CUDA_SUCCESS;
}

API_TELLS(cuDeviceTotalMem_v2, (OUT(size_t), CUdevice dev), device, d, device_get(&d, dev),
	  sim.machine.config.memory)

/* Kernels of all processes share the GPU with or without the daemon. */
static bool mps_daemon_is_there(void)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/control", mps_folder());
	return access(path, F_OK) == 0;
}

void device_give_slots(void)
{
	const char *text = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	const struct machine_config *config = &sim.machine.config;
	double percent = text && mps_daemon_is_there() ? strtod(text, NULL) : 0;

	if (!(percent > 0 && percent < 100))
		return;
	uint32_t sms = (uint32_t)(percent * config->sms / 100);
	machine_give_slots(&sim.machine, (sms ? sms : 1) * config->sm_blocks);
}

CUresult cuDeviceGetAttribute(int *out, CUdevice_attribute attribute, CUdevice dev)
{
	API_ENTER();
	struct device *d;

	RETURN_IF(device_get(&d, dev));
	if (!out || attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
		*out = (int)sim.machine.config.sms;
	else if (attribute == CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)
		*out = (int)sim.machine.config.sm_blocks;
	else if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
		*out = (int)d->gpu + MACHINE_FIRST_BUS;
	else if (attribute == CU_DEVICE_ATTRIBUTE_MPS_ENABLED)
		*out = mps_daemon_is_there();
	else
		*out = attributes[attribute];
	return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	API_ENTER();
	struct device *d;

	RETURN_IF(device_get(&d, dev));
	if (!major || !minor)
		return CUDA_ERROR_INVALID_VALUE;
	*major = 9;
	*minor = 0;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop *out, CUdevice dev)
{
	API_ENTER();
	struct device *d;

	RETURN_IF(device_get(&d, dev));
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (CUdevprop){
		.maxThreadsPerBlock = MAX_THREADS,
		.maxThreadsDim = {1024, 1024, 64},
		.maxGridSize = {0x7fffffff, 65535, 65535},
		.sharedMemPerBlock = DEFAULT_SHARED,
		.totalConstantMemory = 65536,
		.SIMDWidth = 32,
		.memPitch = 0x7fffffff,
		.regsPerBlock = 65536,
		.clockRate = 1980000,
		.textureAlign = 512,
	};
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *out, int len, CUdevice dev)
{
	API_ENTER();
	struct device *d;

	RETURN_IF(device_get(&d, dev));
	if (!out || len < 13)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(out, (size_t)len, "0000:%02x:00.0", d->gpu + MACHINE_FIRST_BUS);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *out, const char *id)
{
	API_ENTER();
	unsigned domain = 0, bus, slot;

	if (!out || !id)
		return CUDA_ERROR_INVALID_VALUE;
	if (sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3 &&
	    (domain = 0, sscanf(id, "%x:%x", &bus, &slot) != 2))
		return CUDA_ERROR_INVALID_VALUE;
	if (domain || slot || bus < MACHINE_FIRST_BUS ||
	    bus - MACHINE_FIRST_BUS >= sim.machine.config.gpus)
		return CUDA_ERROR_INVALID_DEVICE;
	for (unsigned i = 0; i < sim.n_devices; i++) {
		if (sim.devices[i].gpu != bus - MACHINE_FIRST_BUS)
			continue;
		*out = (CUdevice)i;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(int *out, CUdevice dev, CUdevice peer)
{
	API_ENTER();
	struct device *d;

	RETURN_IF(device_get(&d, dev));
	RETURN_IF(device_get(&d, peer));
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = 0;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetExecAffinitySupport(int *out, CUexecAffinityType type, CUdevice dev)
{
	API_ENTER();
	struct device *d;

	RETURN_IF(device_get(&d, dev));
	if (!out || type >= CU_EXEC_AFFINITY_TYPE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	*out = 0;
	return CUDA_SUCCESS;
}
