package items

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"
)

// History is one of the server and the table: its writes in order.
type History struct {
	Number uint64 // rises with each one, also on another server, and in another table
	ID     string // the server's master_replid, and the id of the table
}

// text is the history as its key has it.
func (h History) text() string { return strconv.FormatUint(h.Number, 10) + " " + h.ID }

// loaded is a history, and the hash of the script that was loaded for it.
type loaded struct {
	History
	sha   string
	table string // the id of the table
}

// History returns the history that was found last, and the calls on the table in it alone.
func (d *DB) History() (History, *Session) {
	h := d.at.Load().History
	return h, &Session{db: d, of: &h}
}

// Table returns the id of the table in the history that was found last.
func (d *DB) Table() string { return d.at.Load().table }

// reload loads the script once more, unless that was done since at was the newest.
func (d *DB) reload(ctx context.Context, at *loaded) (*loaded, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if newest := d.at.Load(); newest != at {
		return newest, nil
	}
	return d.loadLocked(ctx, d.cfg.Recreate)
}

func (d *DB) load(ctx context.Context, create bool) (*loaded, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.loadLocked(ctx, create)
}

// loadLocked finds the history of the server and the table, and loads the script for the history. A
// script that another server gets does nothing there: that server has another history. d.mu is held.
func (d *DB) loadLocked(ctx context.Context, create bool) (*loaded, error) {
	client := *d.client.Load()
	had := d.at.Load()
	var known History
	if had != nil {
		known = had.History
	}
	args := []string{strconv.FormatUint(known.Number, 10), known.ID}
	if create {
		args = append(args, newMarker(d.now()).fields()...)
	}
	keys := []string{d.key("history"), d.key("table")}
	found, err := client.Do(ctx, client.B().Eval().Script(permissionsScript+historyScript).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()).ToArray()
	if err != nil {
		d.broke(err)
		return nil, d.translate(err)
	}
	h, table, err := d.readHistory(found, had != nil)
	if err != nil {
		return nil, err
	}
	script := "#!lua\nlocal H = '" + h.text() + "'\n" + placesScript + itemsScript
	sha, err := client.Do(ctx, client.B().ScriptLoad().Script(script).Build()).ToString()
	if err != nil {
		return nil, d.translate(err)
	}
	now := &loaded{h, sha, table}
	if had != nil && had.History != h && d.cfg.Changed != nil {
		d.cfg.Changed(h, &Session{db: d, of: &h})
	}
	d.at.Store(now)
	return now, nil
}

// readHistory reads the reply of history.lua, with the id of the table. known says that the table was
// there before.
func (d *DB) readHistory(found []rueidis.RedisMessage, known bool) (h History, table string, err error) {
	if len(found) != 4 {
		return h, "", wrongReply("of the history has not 4 parts")
	}
	number, err := found[0].ToString()
	if err == nil {
		h.Number, err = strconv.ParseUint(number, 10, 64)
	}
	if err == nil {
		h.ID, err = found[1].ToString()
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
