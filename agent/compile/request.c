#include "compile/request.h"

#include "weir/transform.h"

#define FORMS (1u << WEIR_SLICED | 1u << WEIR_PERSISTENT | 1u << WEIR_RESUMABLE)

/* Compute capabilities 1.0 .. 99.9; the compiler says which of them it knows. */
#define SM_MIN 10
#define SM_MAX 999

#define REGISTERS_MAX 255

static bool lies_inside(uint64_t offset, uint64_t length, uint64_t size)
{
	return offset >= sizeof(struct weir_compile_file) && offset <= size &&
	       length <= size - offset;
}

const char *request_check(struct request *out, const struct weir_compile_file *head, uint64_t size)
{
	if (size < sizeof(*head) || size > WEIR_COMPILE_FILE_MAX)
		return "a file of impossible size";
	if (head->magic != WEIR_COMPILE_MAGIC || head->version == 0)
		return "no compile file";
	if (head->sm < SM_MIN || head->sm > SM_MAX)
		return "no such compute capability";
	if (!head->forms || head->forms & ~FORMS)
		return "no such form";
	if (head->registers > REGISTERS_MAX)
		return "no such number of registers";
	if (head->name_size < 2 || head->name_size > WEIR_KERNEL_NAME_MAX ||
	    !lies_inside(head->name, head->name_size, size))
		return "a name outside the file, or of impossible length";
	if (head->image_size == 0 || !lies_inside(head->image, head->image_size, size))
		return "an image outside the file";
	*out = (struct request){.sm = head->sm,
				.forms = head->forms,
				.registers = head->registers,
				.soonest = head->flags & WEIR_COMPILE_SOONEST,
				.name = head->name,
				.name_size = head->name_size,
				.image = head->image,
				.image_size = head->image_size};
	return NULL;
}
