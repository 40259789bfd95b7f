package items

import (
	"context"
	"slices"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// history is one of a server and a place of the table: the writes there in order.
type history struct {
	number uint64 // rises with each one, also on another server, and in another table
	id     string // the server's master_replid, and the id of the place's marker
}

// text is the history as its key has it.
func (h history) text() string { return strconv.FormatUint(h.number, 10) + " " + h.id }

// loaded is a history, and the hash of the script that was loaded for it.
type loaded struct {
	history

	sha   string
	table string // the id of the marker
}

// histories are those of all places that were found last.
type histories struct {
	places []*loaded
	number uint64 // of all together: it rises with each change of one
}

// with returns the histories with others in the place of some.
func (h *histories) with(places []int, found []*loaded) *histories {
	next := &histories{places: slices.Clone(h.places)}
	for i, place := range places {
		if found[i] != nil {
			next.places[place] = found[i]
		}
	}
	for _, of := range next.places {
		if of != nil {
			next.number += of.number
		}
	}
	return next
}

// Table returns the id of the table in the histories that were found last: that of the marker of its first place.
func (d *DB) Table() string { return d.at.Load().places[0].table }

// changed returns whether the item with a key is in a place that has another history than before. Where the place of
// the names of namespaces has one, all items are: a name that was lost gets another id, and so all buckets of the
// namespace other keys.
func (h *histories) changed(before *histories) func(k schema.Key) bool {
	of := func(k schema.Key) bool {
		place, _ := home(k, len(h.places))
		return h.places[place].history != before.places[place].history
	}
	if of(schema.VersionKey()) {
		return func(schema.Key) bool { return true }
	}
	return of
}

// History returns the number of the histories that were found last, and the calls on the table in them alone.
func (d *DB) History() (number uint64, in *Session) {
	n := d.at.Load().number
	return n, &Session{db: d, of: n}
}

// reload loads the script of a place once more, unless that was done since at was the newest. The other places of its
// server go with it.
func (d *DB) reload(ctx context.Context, place int, at *histories) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if newest := d.at.Load(); newest.places[place] != at.places[place] {
		return nil
	}
	servers, places := d.servers.Load(), []int{place}
	for other := range d.prefixes {
		if other != place && servers.Clients[other] == servers.Clients[place] {
			places = append(places, other)
		}
	}
	found, errs := d.find(ctx, places, d.cfg.Recreate)
	if errs[0] != nil {
		return errs[0] // the others are found by calls of theirs
	}
	d.enterLocked(places, found)
	return nil
}

// load finds the histories of all places.
func (d *DB) load(ctx context.Context, create bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	places := d.allPlaces()
	found, errs := d.find(ctx, places, create)
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	d.enterLocked(places, found)
	return nil
}

// enterLocked goes on in the histories that were found. d.mu is held.
func (d *DB) enterLocked(places []int, found []*loaded) {
	had := d.at.Load()
	next := had.with(places, found)
	if had.number != 0 && next.number != had.number && d.cfg.Changed != nil {
		d.cfg.Changed(next.number, &Session{db: d, of: next.number}, next.changed(had))
	}
	d.at.Store(next)
}

// find finds the histories of places, and loads the script for each: nil where there is an error. A
// script that another server gets does nothing there: that server has another history. d.mu is held.
func (d *DB) find(ctx context.Context, places []int, create bool) (found []*loaded, errs []error) {
	found, errs = make([]*loaded, len(places)), make([]error, len(places))
	had := d.at.Load()
	_ = inPlaces(len(places), func(i int) error { // of one server: in one pipeline
		found[i], errs[i] = d.findOne(ctx, places[i], had.places[places[i]], create)
		return nil
	})
	return found, errs
}

// findOne finds the history of one place, and loads the script for it. had is that before; nil = there was none.
func (d *DB) findOne(ctx context.Context, place int, had *loaded, create bool) (*loaded, error) {
	client, of := d.client(place), d.prefixes[place]
	var known history
	if had != nil {
		known = had.history
	}
	args := []string{strconv.FormatUint(known.number, 10), known.id}
	if create {
		args = append(args, newMarker(d.now()).fields()...)
	}
	keys := []string{of.key("history"), of.key("table")}
	reply, err := client.Do(ctx, client.B().Eval().Script(permissionsScript+historyScript).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()).ToArray()
	if err != nil {
		d.broke(place, err)
		return nil, d.translate(err)
	}
	now := &loaded{}
	if now.history, now.table, err = d.readHistory(reply, had != nil); err != nil {
		return nil, err
	}
	script := "#!lua\nlocal H, T = '" + now.text() + "', '" + string(of) + "'\n" + numbersScript + plainScript + placesScript + itemsScript
	if now.sha, err = client.Do(ctx, client.B().ScriptLoad().Script(script).Build()).ToString(); err != nil {
		return nil, d.translate(err)
	}
	return now, nil
}

// readHistory reads the reply of history.lua, with the id of the marker. known says that the table was
// there before.
func (d *DB) readHistory(found []rueidis.RedisMessage, known bool) (h history, table string, err error) {
	if len(found) != 4 {
		return h, "", wrongReply("of the history has not 4 parts")
	}
	number, err := found[0].ToString()
	if err == nil {
		h.number, err = strconv.ParseUint(number, 10, 64)
	}
	if err == nil {
		h.id, err = found[1].ToString()
	}
	if err != nil {
		return h, "", wrongReply(err.Error())
	}
	fields, err := found[3].AsStrMap()
	if err != nil {
		return h, "", wrongReply(err.Error())
	}
	return h, fields["id"], checkMarker(d.cfg.Name, fields, known)
}
