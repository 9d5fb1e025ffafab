/* Levelled one-line logfmt to stderr: `weir level=info msg="..."`. Linked into every program,
 * libweir among them, so it allocates nothing, takes no lock, and writes each line with one
 * write(). */
#pragma once

#include <stdbool.h>

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

/* @program: first word of each line; not copied. The level comes from $WEIR_LOG (error, warning,
 * info, debug) when set and valid, else it is @level. */
void log_init(const char *program, enum log_level level);
void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);
/* False: @name is no level. */
bool log_level_parse(const char *name, enum log_level *out);

/* Lines longer than 1 KiB are cut; quotes, backslashes and control characters are escaped. errno is
 * kept. */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_line(LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_info(...)    log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...)                                    \
	do {                                              \
		if (log_enabled(LOG_DEBUG))               \
			log_line(LOG_DEBUG, __VA_ARGS__); \
	} while (0)

/* At most one line each @seconds from this place in the code. */
#define log_limited(level, seconds, ...)              \
	do {                                          \
		static _Atomic long log_next_;        \
		if (log_allowed(&log_next_, seconds)) \
			log_line(level, __VA_ARGS__); \
	} while (0)
bool log_allowed(_Atomic long *next, long seconds);
