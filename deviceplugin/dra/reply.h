/* The answer of a unary call. */
#pragma once

#include <protobuf-c/protobuf-c.h>

struct rpc_call;

/* @message: NULL: there was no memory. */
void reply_with(struct rpc_call *call, const ProtobufCMessage *message);
