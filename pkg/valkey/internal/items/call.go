package items

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// result is the outcome of a batch of writes.
type result struct {
	applied    bool
	incomplete bool         // nothing is applied: a snapshot of usage is not there, and the fields of a new one were left out
	held       []bool       // by write: its condition held
	images     []attributes // afterwards, where wanted; or as they are, where the batch was refused
}

// batch are writes in one place that are applied together.
type batch struct {
	place  int
	writes []write
	token  string // of a transaction; "" = none
	latest int64  // Unix ms, by the clock of the server: nothing is applied later; 0 = at any time
}

// words returns those of the script.
func (b *batch) words(g *gains) (words []string, err error) {
	if len(b.writes) == 1 && b.token == "" && b.latest == 0 {
		if words, ok := b.writes[0].plain(g); ok {
			return words, nil
		}
	}
	const ofOne = 64 // about
	words = append(make([]string, 0, ofOne*len(b.writes)), "batch", b.token, strconv.FormatInt(b.latest, 10), strconv.Itoa(len(b.writes)))
	for i := range b.writes {
		if words, err = b.writes[i].words(words); err != nil {
			return nil, wrong(err)
		}
	}
	return g.words(words), nil
}

// apply runs the script with a batch of writes and their gains.
func (s *Session) apply(ctx context.Context, b *batch, g gains) (*result, error) {
	d, writes := s.db, b.writes
	of := d.prefixes[b.place]
	keys := make([]string, len(writes), len(writes)+3)
	for i := range writes {
		k := writes[i].itemKey()
		keys[i] = of.item(k.PK, k.SK)
	}
	keys = g.keys(keys)
	exact := slices.ContainsFunc(writes, func(w write) bool { return w.exact() })
	words, err := b.words(&g)
	if err != nil {
		return nil, err
	}
	reply, err := s.run(ctx, b.place, keys, words, exact && d.cfg.Replica)
	if err != nil {
		return nil, d.translate(err)
	}
	return parse(reply, b)
}

// waitForReplica is how long an exact write waits for a replica. Commuting writes of buckets, as takes are, do not
// wait. It makes a loss rarer, and rules none out: the server has the write already.
const waitForReplica = 50 * time.Millisecond

// run runs the script, and waits for a replica where that is wanted.
func (s *Session) run(ctx context.Context, place int, keys, args []string, replicated bool) (reply []rueidis.RedisMessage, err error) {
	err = s.within(ctx, place, func(client rueidis.Client, at *loaded) error {
		sent := s.db.now()
		script := client.B().Evalsha().Sha1(at.sha).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
		if replicated {
			reply, err = s.db.replicated(ctx, client, script)
		} else {
			reply, err = client.Do(ctx, script).ToArray()
		}
		if err == nil && len(reply) == 4 && place == clockPlace {
			s.db.observe(sent, reply[1:3])
		}
		return err
	})
	return reply, err
}

// replicated runs a script, and waits until a replica has its writes. The client uses another connection for that,
// so that no other call waits.
func (d *DB) replicated(ctx context.Context, client rueidis.Client, script rueidis.Completed) ([]rueidis.RedisMessage, error) {
	both := client.DoMulti(ctx, script, client.B().Wait().Numreplicas(1).Timeout(waitForReplica.Milliseconds()).Build())
	reply, err := both[0].ToArray()
	if err != nil {
		return nil, err
	}
	if n, err := both[1].AsInt64(); err != nil || n == 0 {
		d.unreplicated.Add(1)
	}
	return reply, nil
}

// within makes a call on a place in the histories of the session. Where the server says that it has another one, that
// is found and its script is loaded first.
func (s *Session) within(ctx context.Context, place int, call func(client rueidis.Client, at *loaded) error) error {
	d := s.db
	for again := false; ; again = true {
		at := d.at.Load()
		if at.number < s.of { // histories that are just being entered
			d.mu.Lock()
			at = d.at.Load()
			d.mu.Unlock()
		}
		if s.of != 0 && at.number != s.of {
			return ErrHistory
		}
		err := call(d.client(place), at.places[place])
		switch stale := errors.Is(err, errStale) || isAnswer(err, "NOSCRIPT", "STALE"); {
		case stale && again:
			return ErrHistory
		case stale:
			if err := d.reload(ctx, place, at); err != nil {
				return err
			}
		default:
			d.broke(place, err)
			return err
		}
	}
}

// clockPlace is the place whose server's clock corrects that of this machine: the clocks of several would contradict
// each other.
const clockPlace = 0

// observe passes the server's time, its seconds and microseconds, to the clock.
func (d *DB) observe(sent time.Time, told []rueidis.RedisMessage) {
	if d.clock == nil {
		return
	}
	seconds, err := told[0].ToString()
	micros, err2 := told[1].ToString()
	s, err3 := strconv.ParseInt(seconds, 10, 64)
	us, err4 := strconv.ParseInt(micros, 10, 64)
	if errors.Join(err, err2, err3, err4) == nil {
		d.clock.ObserveExact(sent, d.now(), time.Unix(s, us*1000))
	}
}

// errStale says that the server has another history than the one that is read in.
var errStale = errors.New("the server of the store has another history")

// Follow asks for the history of a place, and finds another one.
func (s *Session) Follow(ctx context.Context, place int) error {
	_, err := s.read(ctx, place, func(rueidis.Client) []rueidis.Completed { return nil })
	return err
}

// read sends commands to the server of a place that change nothing, with one that tells the history. A reply of another
// history is no answer, since that server may have lost the item. While the clock is doubtful another one tells the time:
// nothing is written then that would.
func (s *Session) read(ctx context.Context, place int, commands func(client rueidis.Client) []rueidis.Completed) (answers []rueidis.RedisResult, err error) {
	d := s.db
	err = s.within(ctx, place, func(client rueidis.Client, at *loaded) error {
		all := append([]rueidis.Completed{client.B().Get().Key(d.prefixes[place].key("history")).Build()}, commands(client)...)
		timed := place == clockPlace && d.clock.Reading().Doubtful
		if timed {
			all = append(all, client.B().Time().Build())
		}
		sent := d.now()
		answers = client.DoMulti(ctx, all...)
		if timed {
			last := len(answers) - 1
			if told, err := answers[last].ToArray(); err == nil && len(told) == 2 {
				d.observe(sent, told)
			}
			answers = answers[:last]
		}
		history, err := answers[0].ToString()
		if rueidis.IsRedisNil(err) || err == nil && history != at.text() {
			return errStale
		}
		answers = answers[1:]
		return err
	})
	return answers, d.translate(err)
}

// fetch reads items of one place by the keys of their hashes, nil where there is none. An item that cannot be read has a
// fault.
func (s *Session) fetch(ctx context.Context, place int, keys []string) (all []attributes, faults []error, err error) {
	hashes, faults, err := s.hashes(ctx, place, keys)
	if err != nil {
		return nil, nil, err
	}
	hours := openHours{of: s.db.prefixes[place], read: func(keys []string) ([]map[string]string, error) {
		found, _, err := s.hashes(ctx, place, keys)
		return found, err
	}}
	if err := hours.add(keys, hashes, false); err != nil {
		return nil, nil, err
	}
	all = make([]attributes, len(keys))
	for i, flat := range hashes {
		if len(flat) > 0 {
			all[i], faults[i] = decodeAll(flat)
		}
	}
	return all, faults, nil
}

// hashes reads hashes of one place in one round trip, nil where there is none. Another value has a fault.
func (s *Session) hashes(ctx context.Context, place int, keys []string) (all []map[string]string, faults []error, err error) {
	answers, err := s.read(ctx, place, func(client rueidis.Client) []rueidis.Completed {
		commands := make([]rueidis.Completed, len(keys))
		for i, k := range keys {
			commands[i] = client.B().Hgetall().Key(k).Build()
		}
		return commands
	})
	if err != nil {
		return nil, nil, err
	}
	all, faults = make([]map[string]string, len(keys)), make([]error, len(keys))
	for i, r := range answers {
		flat, err := r.AsStrMap()
		switch {
		case isAnswer(err, "WRONGTYPE"):
			faults[i] = s.db.translate(err)
		case err != nil:
			return nil, nil, s.db.translate(err)
		case len(flat) > 0:
			all[i] = flat
		}
	}
	return all, faults, nil
}

// decodeAll returns the item that a hash has.
func decodeAll(flat map[string]string) (attributes, error) {
	it := make(attributes, len(flat))
	for name, v := range flat {
		if err := decodeInto(it, name, v); err != nil {
			return nil, err
		}
	}
	return it, nil
}
