#include "weir/base.h"
#include "weir/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {"error", "warning", "info", "debug"};
static const char *program_name = "weir";
static _Atomic int threshold = LOG_WARNING;

bool log_level_parse(const char *name, enum log_level *out)
{
	for (size_t i = 0; i < countof(names); i++) {
		if (strcmp(name, names[i]) == 0) {
			*out = (enum log_level)i;
			return true;
		}
	}
	return false;
}

void log_init(const char *program, enum log_level level)
{
	const char *wanted = getenv("WEIR_LOG");

	program_name = program;
	log_set_level(level);
	if (wanted && log_level_parse(wanted, &level))
		log_set_level(level);
}

void log_set_level(enum log_level level)
{
	/* Relaxed: a line more or less during the change does no harm. */
	store_relaxed(&threshold, (int)level);
}

bool log_enabled(enum log_level level)
{
	return (int)level <= load_relaxed(&threshold);
}

/* Copies @text as the inside of a quoted string. */
static size_t escape(char *out, size_t room, const char *text)
{
	size_t n = 0;

	for (; *text && n + 4 < room; text++) {
		unsigned char c = (unsigned char)*text;
		if (c == '"' || c == '\\') {
			out[n++] = '\\';
			out[n++] = (char)c;
		} else if (c == '\n') {
			out[n++] = '\\';
			out[n++] = 'n';
		} else {
			out[n++] = c < 0x20 || c == 0x7f ? '?' : (char)c;
		}
	}
	return n;
}

void log_line(enum log_level level, const char *format, ...)
{
	char text[768], line[1024];
	int saved = errno;
	struct timespec now;
	struct tm utc;
	va_list args;

	if (!log_enabled(level))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	size_t n = strftime(line, sizeof(line), "time=%Y-%m-%dT%H:%M:%S", &utc);
	n += (size_t)snprintf(line + n, sizeof(line) - n,
			      ".%03ldZ level=%s program=%.32s pid=%d msg=\"", now.tv_nsec / 1000000,
			      names[level], program_name, (int)getpid());
	n += escape(line + n, sizeof(line) - n - 3, text);
	line[n++] = '"';
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, n) < 0) {
		/* Nowhere left to say it. */
	}
	errno = saved;
}

bool log_allowed(_Atomic long *next, long seconds)
{
	long now = (long)(monotonic_now() / NS_PER_S), expected = atomic_load(next);

	return now >= expected && atomic_compare_exchange_strong(next, &expected, now + seconds);
}
