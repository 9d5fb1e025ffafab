#include "weir/error.h"

#include "weir/log.h"

#include <string.h>

int error_trace(int error, const char *file, int line, const char *function)
{
	log_error("%s (%s:%d, %s)", strerror(error < 0 ? -error : error), file, line, function);
	return error;
}
