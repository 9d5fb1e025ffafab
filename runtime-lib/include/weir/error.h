/* The error convention: 0 is success, a positive value is an outcome named by the module's enum
 * that the caller must handle, a negative errno is fatal and travels up unchanged, traced once
 * where it began. */
#pragma once

/* Logs @error with the place it began and returns it. */
int error_trace(int error, const char *file, int line, const char *function);

#define error_origin(error) error_trace((error), __FILE__, __LINE__, __func__)
