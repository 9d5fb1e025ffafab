#include "weir/health.h"

#include <stdio.h>

#include "weir/base.h"

const struct health_settings health_defaults = {.recovery = 60, .ecc = true};

static int read_xids(struct yaml_file *file, const yaml_node_t *value,
		     const struct yaml_field *field, void *target)
{
	static const struct yaml_field xid = {.min = 1, .max = 100000};
	struct health_settings *settings = target;
	int n = yaml_entries(file, value, YAML_SEQUENCE_NODE), r = n < 0 ? n : 0;

	(void)field;
	if (n > (int)HEALTH_XIDS_MAX)
		return yaml_fail(file, value, "expected at most %u entries", HEALTH_XIDS_MAX);
	for (int i = 0; i < n && r == 0; i++)
		r = yaml_read_number(file, yaml_item(file, value, (size_t)i), &xid,
				     &settings->ignored_xids[i]);
	if (r == 0)
		settings->n_ignored_xids = (size_t)n;
	return r;
}

const struct yaml_field health_fields[] = {
	{"ignoredXids", read_xids, 0, offsetof(struct health_settings, recovery)},
	{"recoverySeconds", yaml_read_number, YAML_AT(struct health_settings, recovery), .min = 1,
	 .max = 86400},
	{"ecc", yaml_read_bool, YAML_AT(struct health_settings, ecc)},
	{0},
};

static bool is_ignored(const struct health_settings *settings, uint64_t xid)
{
	for (size_t i = 0; i < settings->n_ignored_xids; i++)
		if (settings->ignored_xids[i] == xid)
			return true;
	return false;
}

static void fall_sick(struct health *health, const struct health_settings *settings, uint64_t xid,
		      uint64_t now)
{
	health->xid = xid;
	health->sick_end = now + settings->recovery * NS_PER_S;
}

bool health_xid(struct health *health, const struct health_settings *settings, uint64_t xid,
		uint64_t now)
{
	enum xid_meaning meaning = xid_meaning(xid);

	if (meaning == XID_HARMLESS || is_ignored(settings, xid))
		return false;
	fall_sick(health, settings, xid, now);
	health->reset_wanted |= meaning == XID_RESET;
	return true;
}

void health_asked(struct health *health, enum health_answer answer)
{
	if (health->answer == HEALTH_LOST && answer == HEALTH_ANSWERS)
		health->reset_wanted = false;
	/* A lost GPU stays lost until it answers. */
	if (health->answer != HEALTH_LOST || answer == HEALTH_ANSWERS)
		health->answer = answer;
}

void health_errors(struct health *health, const struct health_settings *settings, uint64_t errors,
		   uint64_t now)
{
	bool more = health->errors_known && errors > health->errors;

	/* Errors of the first count happened before we started. */
	if (health->errors_known && errors < health->errors)
		health->reset_wanted = false;
	health->errors_known = true;
	health->errors = errors;
	if (more && settings->ecc)
		fall_sick(health, settings, health->xid * (now < health->sick_end), now);
}

void health_remap(struct health *health, const struct health_settings *settings, bool failed)
{
	health->defect = failed && settings->ecc;
}

void health_action(struct health *health, unsigned action)
{
	health->action_known = true;
	health->action = action;
}

static bool awaits_reset(const struct health *health)
{
	return health->action_known ? health->action != 0 : health->reset_wanted;
}

bool health_good(const struct health *health, uint64_t now)
{
	return health->answer == HEALTH_ANSWERS && !health->defect && !awaits_reset(health) &&
	       now >= health->sick_end;
}

static const char *action_name(unsigned action)
{
	static const char *const names[] = {"nothing", "a reset of the GPU", "a boot of the node",
					    "no more peer-to-peer work",
					    "no more work and a reset"};

	return action < countof(names) ? names[action] : "a recovery";
}

void health_reason(const struct health *health, uint64_t now, char out[HEALTH_REASON_MAX])
{
	const char *until = awaits_reset(health) ? ", until it is reset" : "";

	if (health->answer == HEALTH_LOST)
		snprintf(out, HEALTH_REASON_MAX, "the driver has lost it");
	else if (health->answer == HEALTH_SILENT)
		snprintf(out, HEALTH_REASON_MAX, "it does not answer");
	else if (health->defect)
		snprintf(out, HEALTH_REASON_MAX, "rows of its memory could not be remapped");
	else if (health->action_known && health->action)
		snprintf(out, HEALTH_REASON_MAX, "the driver wants %s",
			 action_name(health->action));
	else if (health_good(health, now))
		snprintf(out, HEALTH_REASON_MAX, "good");
	else if (health->xid)
		snprintf(out, HEALTH_REASON_MAX, "XID %llu (%s)%s", (unsigned long long)health->xid,
			 xid_name(health->xid), until);
	else
		snprintf(out, HEALTH_REASON_MAX, "uncorrected memory errors%s", until);
}
