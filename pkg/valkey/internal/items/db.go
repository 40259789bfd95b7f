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
	//go:embed places.lua
	placesScript string // of the two below
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
	// Connect makes a client of the server that has a key, which must neither retry nor cache. It returns its
	// address where another server may have the key at another time, in a cluster, and else "". Where the
	// address is at, that of the present client, it makes none.
	Connect func(ctx context.Context, key, at string) (client rueidis.Client, address string, err error)
	Clock   *awsdb.Clock     // gets the server's time with each reply of a write; nil = none
	Now     func() time.Time // the machine's clock
	// Changed is called for each history but the first, with the calls on the table in it. It must not
	// block. nil = it is not called.
	Changed func(to History, in *Session)
	// Recreate makes the marker of a table that was lost, as that of a new table.
	Recreate bool
	NoUsage  bool // usage is not counted
	// Replica lets exact writes wait until a replica of the server has them, see waitForReplica.
	Replica bool
	// Gained is called for each write that has changed usage, or may have, with the key of the snapshot of
	// its hour. It must not block. nil = it is not called.
	Gained func(hour schema.Key)
}

// DB is a table on a server. It is safe for concurrent use.
type DB struct {
	*link
	prefix

	cfg   Config
	usage *usage
	at    atomic.Pointer[loaded] // nil before the first call; link.mu is held where it changes

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
	if err := d.find(ctx, create); err != nil {
		d.Close()
		return nil, awsdb.TranslateRead(err)
	}
	return d, nil
}

func connect(cfg Config) (*DB, error) {
	of := prefixOf(cfg.Name)
	l, err := newLink(func(ctx context.Context, at string) (rueidis.Client, string, error) {
		return cfg.Connect(ctx, of.key("table"), at)
	}, cfg.Clock, cfg.Now)
	if err != nil {
		return nil, err
	}
	d := &DB{link: l, prefix: of, cfg: cfg}
	d.usage, err = newUsage(usage{prefix: d.prefix, off: cfg.NoUsage, clock: cfg.Clock, now: cfg.Now, gained: cfg.Gained})
	return d, err
}

// find checks the server and the table.
func (d *DB) find(ctx context.Context, create bool) error {
	if _, err := d.checkServer(ctx); err != nil {
		return err
	}
	if err := d.mayWait(ctx); err != nil {
		return err
	}
	_, err := d.load(ctx, create)
	return err
}

// mayWait reports whether the user may wait for replicas, where writes are to.
func (d *DB) mayWait(ctx context.Context) error {
	if !d.cfg.Replica {
		return nil
	}
	client := *d.client.Load()
	return d.translate(client.Do(ctx, client.B().Wait().Numreplicas(0).Timeout(1).Build()).Error())
}

// Look connects to a server, and reports whether it has the table: missing says why it cannot be used.
// The error says why the server cannot be. server is nil where it gave no answer.
func Look(ctx context.Context, cfg Config) (server *Server, missing, err error) {
	d, err := connect(cfg) //nolint:contextcheck // a link outlives its start
	if err != nil {
		return nil, nil, err
	}
	defer d.Close()
	if server, err = d.checkServer(ctx); err != nil {
		return server, nil, awsdb.TranslateRead(err)
	}
	if err := d.mayWait(ctx); err != nil {
		return server, nil, awsdb.TranslateRead(err)
	}
	client := *d.client.Load()
	permitted := client.B().Eval().Script("#!lua flags=no-writes\n" + permissionsScript).Numkeys(1).Key(d.key("history")).Build()
	if err := client.Do(ctx, permitted).Error(); err != nil && !rueidis.IsRedisNil(err) {
		return server, nil, awsdb.TranslateRead(d.translate(err))
	}
	fields, err := client.Do(ctx, client.B().Hgetall().Key(d.key("table")).Build()).AsStrMap()
	if err != nil {
		return server, nil, awsdb.TranslateRead(d.translate(err))
	}
	return server, checkMarker(cfg.Name, fields, false), nil
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

// Unreplicated returns how many exact writes no replica had in time.
func (d *DB) Unreplicated() int64 { return d.unreplicated.Load() }

// Session returns the calls on the table in any history of the server.
func (d *DB) Session() *Session { return &Session{db: d} }

// Sweep deletes items that expired before a time, at most n, and reports whether there may be more.
func (d *DB) Sweep(ctx context.Context, before time.Time, n int) (more bool, err error) {
	client := *d.client.Load()
	looked, err := client.Do(ctx, client.B().Eval().Script("#!lua flags=allow-oom\n"+placesScript+sweepScript).Numkeys(1).Key(d.key("x")).
		Arg(string(d.prefix), strconv.FormatInt(before.Unix(), 10), strconv.Itoa(n)).Build()).AsInt64()
	return looked == int64(n), d.translate(err)
}
