package embedded

// hourMs is an hour in milliseconds.
const hourMs = 60 * 60 * 1000

// hourOf returns the hour of a time, hours since 1970.
func hourOf(ms int64) int64 {
	h := ms / hourMs
	if ms%hourMs < 0 {
		h--
	}
	return h
}

// eventsLimit stands for a limit where events are counted. No limit has this name.
const eventsLimit = ""

// consumed is usage of a limit, or events, of an hour.
type consumed struct {
	hour   int64
	limit  string // eventsLimit for events
	amount int64  // millitokens, or events
}

// usageRow is consumption that moves from a bucket to the rows of the file.
type usageRow struct {
	consumed

	namespace, entity, resource string
}
