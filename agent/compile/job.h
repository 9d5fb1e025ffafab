/* Jobs of the compile service. A job runs weir-compile for all requests of one key, checks what
 * that wrote, and answers. */
#pragma once

#include "compile/jobs.h"

/* Tells the client. @fd as for compile_answer_fn. */
void compile_tell(struct compile *compile, struct compile_client *client, uint32_t id,
		  enum weir_compile_status status, const char *text, int fd);
/* The same, and frees the request. */
void compile_answer(struct compile_request *request, enum weir_compile_status status,
		    const char *text, int fd);
void compile_request_free(struct compile_request *request);

/* The file is sealed or only the agent has it. @counters: count the object's refusals, or NULL. */
bool compile_is_object(int fd, uint64_t size, struct compile_counters *counters);

/* The cache has no object for the request: a job makes it, a new one or one for the same key. */
void compile_join(struct compile_request *request);
/* Nobody waits for it. */
void compile_job_free(struct compile_job *job);
