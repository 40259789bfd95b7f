package items

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	_ "embed" // the scripts

	"github.com/redis/rueidis"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

var (
	//go:embed numbers.lua
	numbersScript string // of those below
	//go:embed places.lua
	placesScript string // of items.lua and sweep.lua
	//go:embed plain.lua
	plainScript string // before items.lua
	//go:embed items.lua
	itemsScript string
	//go:embed permissions.lua
	permissionsScript string // of the next one
	//go:embed history.lua
	historyScript string
	//go:embed sweep.lua
	sweepScript string
)

// Config configures a DB. Name, Connect and Now must be set.
type Config struct {
	Name string // of the table
	// Connect makes clients of the servers that have a table, which must neither retry nor cache: one without addresses,
	// or in a cluster one for each of the places, by their slots. had are the present ones, nil = none. Those of other
	// addresses than lost stay as they are. It returns had where it finds no others, and had in part where it does not
	// find all, with an error.
	Connect func(ctx context.Context, slots []int, had *Servers, lost string) (*Servers, error)
	Clock   *awsdb.Clock     // gets the server's time with each reply of a write; nil = none
	Now     func() time.Time // the machine's clock
	// Changed is called for each change of a history, with the number of the histories and the calls on the table in
	// them. of reports whether an item is where the history is another one. It must not block. nil = it is not called.
	Changed func(number uint64, in *Session, of func(schema.Key) bool)
	// Recreate makes the marker of a table that was lost, as that of a new table.
	Recreate bool
	NoUsage  bool // usage is not counted
	// Replica lets exact writes wait until a replica of the server has them, see waitForReplica.
	Replica bool
	// Gained is called for each write that has changed usage, or may have, with the key of the snapshot of
	// its hour. It must not block. nil = it is not called.
	Gained func(hour schema.Key)
}

// DB is a table on a server, or on those of a cluster. It is safe for concurrent use.
type DB struct {
	*link

	cfg      Config
	prefixes []prefix // of keys, by place
	usage    *usage
	at       atomic.Pointer[histories] // link.mu is held where it changes

	unreplicated atomic.Int64 // exact writes that no replica had in time
}

// Open connects, and finds the table, which it makes where create says so. It makes no other change.
// Errors wrap limiter.ErrUnavailable where another try may help, and limiter.ErrInvalid where it does
// not.
func Open(ctx context.Context, cfg Config, create bool) (*DB, error) {
	d, err := connect(cfg) //nolint:contextcheck // a link outlives its start
	if err != nil {
		return nil, err
	}
	if err := d.begin(ctx, create); err != nil {
		d.Close()
		return nil, awsdb.TranslateRead(err)
	}
	return d, nil
}

func connect(cfg Config) (*DB, error) {
	slots := Slots(cfg.Name)
	l, err := newLink(func(ctx context.Context, had *Servers, lost string) (*Servers, error) {
		return cfg.Connect(ctx, slots, had, lost)
	}, cfg.Clock, cfg.Now)
	if err != nil {
		return nil, err
	}
	d := &DB{link: l, cfg: cfg, prefixes: prefixes(cfg.Name, l.servers.Load().Addresses != nil)}
	d.at.Store(&histories{places: make([]*loaded, len(d.prefixes))})
	d.usage, err = newUsage(usage{off: cfg.NoUsage, clock: cfg.Clock, now: cfg.Now, gained: cfg.Gained})
	return d, err
}

// begin checks the servers, and finds the table.
func (d *DB) begin(ctx context.Context, create bool) error {
	if _, err := d.checkServers(ctx); err != nil {
		return err
	}
	if err := d.mayWait(ctx); err != nil {
		return err
	}
	return d.load(ctx, create)
}

// mayWait reports whether the user may wait for replicas, where writes are to.
func (d *DB) mayWait(ctx context.Context) error {
	if !d.cfg.Replica {
		return nil
	}
	for _, client := range d.servers.Load().clients() {
		if err := client.Do(ctx, client.B().Wait().Numreplicas(0).Timeout(1).Build()).Error(); err != nil {
			return d.translate(err)
		}
	}
	return nil
}

// Look connects to the servers, and reports whether they have the table: missing says why it cannot be used.
// The error says why a server cannot be. servers are those that gave an answer.
func Look(ctx context.Context, cfg Config) (servers []*Server, missing, err error) {
	d, err := connect(cfg) //nolint:contextcheck // a link outlives its start
	if err != nil {
		return nil, nil, err
	}
	defer d.Close()
	if servers, err = d.checkServers(ctx); err != nil {
		return servers, nil, awsdb.TranslateRead(err)
	}
	if err := d.mayWait(ctx); err != nil {
		return servers, nil, awsdb.TranslateRead(err)
	}
	for place := range d.prefixes {
		if missing, err = d.look(ctx, place); missing != nil || err != nil {
			break
		}
	}
	return servers, missing, awsdb.TranslateRead(err)
}

// look reports why a place of the table cannot be used, and why its server cannot be.
func (d *DB) look(ctx context.Context, place int) (missing, err error) {
	client, of := d.client(place), d.prefixes[place]
	permitted := client.B().Eval().Script("#!lua flags=no-writes\n" + permissionsScript).Numkeys(1).Key(of.key("history")).Build()
	if err := client.Do(ctx, permitted).Error(); err != nil && !rueidis.IsRedisNil(err) {
		return nil, d.translate(err)
	}
	fields, err := client.Do(ctx, client.B().Hgetall().Key(of.key("table")).Build()).AsStrMap()
	if err != nil {
		return nil, d.translate(err)
	}
	return checkMarker(d.cfg.Name, fields, false), nil
}

// Create makes the table, unless it is there, and reports whether it did.
func Create(ctx context.Context, cfg Config) (made bool, err error) {
	_, missing, err := Look(ctx, cfg)
	if err != nil || missing == nil {
		return false, err
	}
	d, err := Open(ctx, cfg, true)
	if err != nil {
		return false, err
	}
	d.Close()
	return true, nil
}

// Close closes the connection. Calls after it fail.
func (d *DB) Close() { d.close() }

// Places returns how many places of keys the table has.
func (d *DB) Places() int { return len(d.prefixes) }

// allPlaces returns the places of the table.
func (d *DB) allPlaces() []int {
	all := make([]int, len(d.prefixes))
	for i := range all {
		all[i] = i
	}
	return all
}

// Unreplicated returns how many exact writes no replica had in time.
func (d *DB) Unreplicated() int64 { return d.unreplicated.Load() }

// Session returns the calls on the table in any history of the server.
func (d *DB) Session() *Session { return &Session{db: d} }

// Sweep deletes items that expired before a time, at most n in each place, and reports whether there may be more.
func (d *DB) Sweep(ctx context.Context, before time.Time, n int) (more bool, err error) {
	var full atomic.Bool
	err = inPlaces(len(d.prefixes), func(place int) error {
		client, of := d.client(place), d.prefixes[place]
		looked, err := client.Do(ctx, client.B().Eval().Script("#!lua flags=allow-oom\n"+numbersScript+placesScript+sweepScript).Numkeys(1).Key(of.key("x")).
			Arg(string(of), strconv.FormatInt(before.Unix(), 10), strconv.Itoa(n)).Build()).AsInt64()
		if looked == int64(n) {
			full.Store(true)
		}
		return d.translate(err)
	})
	return full.Load(), err
}
