/* Variables of the program's code. A module has its own in one context. Those of a library exist
 * once in each context that uses it, and the driver makes them whenever it likes. So each context
 * counts for each library, from the start of whichever comes later. */
#include "memory/memory.h"
#include "shim/ioctl.h"

bool memory_claim_code(struct memory_claim *claim, bool library, uint64_t size)
{
	struct ledger *ledger;

	*claim = (struct memory_claim){0};
	if (size >> 56) { /* unknown: refused where there is an account */
		ledger = ledger_here();
		ledger = ledger ? ledger : ledger_of(0);
		return !ledger || ledger_take(ledger, size);
	}
	if (!size || !library)
		return !size || memory_claim(claim, size);
	claim->size = size;
	return ledger_add_variables((int64_t)size);
}

/* After one more context was counted on the device. @context: NULL if it did not begin. */
static void begun(CUdevice device, CUcontext context)
{
	struct record former, record = {.kind = RECORD_CONTEXT,
					.key = (uintptr_t)context,
					.size = (uint64_t)device,
					.context = context};

	if (!context || (table_find(record.kind, record.key, &former) && former.context == context))
		ledger_add_contexts(device, -1, true); /* it is counted already */
	else
		table_put(&record);
	if (context)
		channel_groups_bind(context);
}

#define BEGINS(name, parameters, arguments)                              \
	EXPORT CUresult name parameters                                  \
	{                                                                \
		driver_ready();                                          \
		if (!ledger_add_contexts(device, 1, false))              \
			return CUDA_ERROR_OUT_OF_MEMORY;                 \
		CUresult result = real(name) arguments;                  \
		begun(device, result == CUDA_SUCCESS ? *context : NULL); \
		return result;                                           \
	}
#define WITH_FLAGS (CUcontext * context, unsigned flags, CUdevice device)
BEGINS(cuCtxCreate, WITH_FLAGS, (context, flags, device))
BEGINS(cuCtxCreate_v2, WITH_FLAGS, (context, flags, device))
BEGINS(cuCtxCreate_v3,
       (CUcontext * context, CUexecAffinityParam *affinity, int n, unsigned flags, CUdevice device),
       (context, affinity, n, flags, device))
BEGINS(cuCtxCreate_v4,
       (CUcontext * context, CUctxCreateParams *parameters, unsigned flags, CUdevice device),
       (context, parameters, flags, device))

/* One that is active is counted: it need not fit once more. */
EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	unsigned flags;
	int active = 0;

	driver_ready();
	real(cuDevicePrimaryCtxGetState)(device, &flags, &active);
	if (!ledger_add_contexts(device, 1, active))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = real(cuDevicePrimaryCtxRetain)(context, device);
	begun(device, result == CUDA_SUCCESS ? *context : NULL);
	return result;
}
