#include "memory/memory-table.h"

#include "shim/thread.h"

/* Open addressing. A look-up passes graves: places whose record was taken out. */
enum place_state { PLACE_FREE, PLACE_TAKEN, PLACE_GRAVE };

struct place {
	enum place_state state;
	struct record record;
};

static struct {
	pthread_mutex_t lock;
	struct place *places;
	size_t size; /* a power of two */
	size_t taken, graves;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t hash(enum record_kind kind, uint64_t key)
{
	uint64_t h = (key ^ (uint64_t)kind << 60) * 0x9e3779b97f4a7c15ull;

	return (size_t)(h >> 20);
}

static struct place *find(enum record_kind kind, uint64_t key)
{
	for (size_t i = hash(kind, key), n = 0; n < table.size; i++, n++) {
		struct place *place = &table.places[i & (table.size - 1)];
		if (place->state == PLACE_FREE)
			return NULL;
		if (place->state == PLACE_TAKEN && place->record.kind == kind &&
		    place->record.key == key)
			return place;
	}
	return NULL;
}

/* The caller made sure of room, and that there is no such record. */
static void insert(const struct record *record)
{
	size_t i = hash(record->kind, record->key);

	while (table.places[i & (table.size - 1)].state == PLACE_TAKEN)
		i++;
	struct place *place = &table.places[i & (table.size - 1)];
	table.graves -= place->state == PLACE_GRAVE;
	*place = (struct place){PLACE_TAKEN, *record};
	table.taken++;
}

/* Keeps a third of the places neither taken nor graves. */
static bool make_room(void)
{
	struct place *old = table.places;
	size_t size = table.size;

	if (size && (table.taken + table.graves + 1) * 3 <= size * 2)
		return true;
	size_t wanted = size ? size : 256;
	while ((table.taken + 1) * 3 > wanted)
		wanted *= 2;
	struct place *places = calloc(wanted, sizeof(*places));
	if (!places)
		return false;
	table.places = places;
	table.size = wanted;
	table.taken = table.graves = 0;
	for (size_t i = 0; i < size; i++)
		if (old[i].state == PLACE_TAKEN)
			insert(&old[i].record);
	free(old);
	return true;
}

static void bury(struct place *place)
{
	place->state = PLACE_GRAVE;
	table.taken--;
	table.graves++;
}

bool table_put(const struct record *record)
{
	locked(&table.lock);
	struct place *place = find(record->kind, record->key);
	bool done = place || make_room();
	if (place)
		place->record = *record;
	else if (done)
		insert(record);
	return done;
}

static bool look(enum record_kind kind, uint64_t key, struct record *out, bool take)
{
	locked(&table.lock);
	struct place *place = find(kind, key);
	if (place)
		*out = place->record;
	if (place && take)
		bury(place);
	return place;
}

bool table_take(enum record_kind kind, uint64_t key, struct record *out)
{
	return look(kind, key, out, true);
}

bool table_find(enum record_kind kind, uint64_t key, struct record *out)
{
	return look(kind, key, out, false);
}

bool table_find_mapping(uint64_t address, struct record *out)
{
	locked(&table.lock);
	for (size_t i = 0; i < table.size; i++) {
		const struct place *place = &table.places[i];
		if (place->state == PLACE_TAKEN && place->record.kind == RECORD_MAPPING &&
		    address - place->record.key < place->record.size) {
			*out = place->record;
			return true;
		}
	}
	return false;
}

void table_sift(bool (*visit)(struct record *record, void *userdata), void *userdata)
{
	locked(&table.lock);
	for (size_t i = 0; i < table.size; i++)
		if (table.places[i].state == PLACE_TAKEN &&
		    visit(&table.places[i].record, userdata))
			bury(&table.places[i]);
}

void table_forget(void)
{
	pthread_mutex_init(&table.lock, NULL);
	free(table.places);
	table.places = NULL;
	table.size = table.taken = table.graves = 0;
}
