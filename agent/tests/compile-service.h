/* A compile service for tests, with the real weir-compile or one that misbehaves: the test itself,
 * started under that name. It has two clients. */
#pragma once

#include "compile-fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weir/object.h"

#define PERSISTENT (1u << WEIR_PERSISTENT)
#define PTX_SIZE   (sizeof(ptx) - 1)

/* PTX with a kernel `add`. */
static const char ptx[] = ".version 7.0\n"
			  ".target sm_75\n"
			  ".address_size 64\n"
			  ".visible .entry add(.param .u64 add_p, .param .u32 add_n)\n"
			  "{\n"
			  "	.reg .pred %p;\n"
			  "	.reg .b32 %r<6>;\n"
			  "	.reg .b64 %a<3>;\n"
			  "	ld.param.u64 %a1, [add_p];\n"
			  "	ld.param.u32 %r5, [add_n];\n"
			  "	mov.u32 %r1, %ctaid.x;\n"
			  "	mov.u32 %r2, %ntid.x;\n"
			  "	mov.u32 %r3, %tid.x;\n"
			  "	mad.lo.u32 %r1, %r1, %r2, %r3;\n"
			  "	setp.ge.u32 %p, %r1, %r5;\n"
			  "	@%p bra END;\n"
			  "	mul.wide.u32 %a2, %r1, 4;\n"
			  "	add.u64 %a2, %a1, %a2;\n"
			  "	ld.global.u32 %r4, [%a2];\n"
			  "	add.u32 %r4, %r4, 1;\n"
			  "	st.global.u32 [%a2], %r4;\n"
			  "END:\n"
			  "	ret;\n"
			  "}\n";

extern char folder[]; /* the cache's */
extern struct loop loop;
extern struct compile compile;
extern struct requester one, two;

/* The misbehaviour, given as --memory. */
enum trick { WAITS = 300, SPINS, WRITES_JUNK, WRITES_NOTHING, ABORTS, EXITS_ODDLY, IS_DONE };

/* Call it first in main(). It does not return in the program that misbehaves. */
void misbehave_if_asked(int argc, char **argv);
/* For cmocka: set-up and tear-down of the group and of each test. */
int make_name(void **state);
int set_up(void **state);
int tear_down(void **state);
#define COMPILE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* Members left out have their usual values. */
void start(const struct config_compile *config);
void start_trick(enum trick trick, uint32_t helpers);
void stop(void);
/* Removes the cache's folder. */
void empty(void);

/* A request for `add`. */
int file_for(uint32_t sm);
void ask(struct requester *requester, uint32_t id, int fd);
/* Asks for `add`, and waits for the answer. */
void get(struct requester *requester, int fd);
/* Handles all events that are ready. */
void pump(void);
/* The object of the last answer, mapped until the test ends. */
const struct weir_object *object_of(const struct requester *requester);
/* Checks that it is the object of `add`. */
void check_object(const struct weir_object *object, bool is_ptx);
void expect_text(enum weir_compile_status status, const char *part);
