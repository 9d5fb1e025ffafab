#include "weir/xid.h"

#include "weir/base.h"

static const struct row {
	uint16_t xid;
	enum xid_meaning meaning;
	const char *name;
} rows[] = {
#define XID(number, meaning, words) {number, XID_##meaning, words},
#include "xids.def"
#undef XID
};

static const struct row *find(uint64_t xid)
{
	for (size_t i = 0; i < countof(rows); i++)
		if (rows[i].xid == xid)
			return &rows[i];
	return NULL;
}

enum xid_meaning xid_meaning(uint64_t xid)
{
	const struct row *row = find(xid);

	return row ? row->meaning : XID_REST;
}

const char *xid_name(uint64_t xid)
{
	const struct row *row = find(xid);

	return row ? row->name : "not in the table";
}
