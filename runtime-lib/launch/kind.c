#include "launch/kind.h"

#include "launch/preempt.h"

_Atomic int launch_events_recorded;

static enum launch_kind records(void)
{
	if (!load_relaxed(&launch_events_recorded))
		store_relaxed(&launch_events_recorded, 1);
	return LAUNCH_RECORDS;
}

/* Plain: only attributes that a form takes as the native kernel does. */
enum launch_kind launch_kind_of(const CUlaunchConfig *config)
{
	bool formable =
		!config->numAttrs || (config->attrs && config->numAttrs <= FORM_ATTRIBUTES_MAX);
	bool dependent = false, whole = false;

	for (unsigned i = 0; config->attrs && i < config->numAttrs; i++) {
		switch (config->attrs[i].id) {
		case CU_LAUNCH_ATTRIBUTE_IGNORE:
		case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
			break;
		case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
			dependent |=
				config->attrs[i].value.programmaticStreamSerializationAllowed != 0;
			break;
		case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
			return records();
		case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
			whole |= config->attrs[i].value.cooperative != 0;
			formable = false;
			break;
		default:
			formable = false;
		}
	}
	if (dependent)
		return formable ? LAUNCH_DEPENDENT : LAUNCH_OVERLAP;
	return formable ? LAUNCH_PLAIN : whole ? LAUNCH_WHOLE : LAUNCH_NATIVE;
}
