#include "dra/reply.h"

#include "codec.h"
#include "rpc/rpc.h"
#include "weir/base.h"

void reply_with(struct rpc_call *call, const ProtobufCMessage *message)
{
	cleanup(bytes_deinit) struct bytes bytes = {0};

	if (!message || codec_encode(&bytes, message) < 0 ||
	    rpc_call_send(call, bytes.data, bytes.size) < 0)
		rpc_call_finish(call, RPC_INTERNAL, "out of memory, or answer too large");
	else
		rpc_call_finish(call, RPC_OK, NULL);
}
