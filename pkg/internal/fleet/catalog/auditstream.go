package catalog

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// AuditDelay is how old a window of events is when it is read. Until then events may still get an earlier time
	// than others that are there: from a change that is sent again, or from a clock that is not corrected yet.
	AuditDelay = 15 * time.Minute
	// AuditWindow is the time whose events are read together. Windows begin at its multiples, in Unix time.
	AuditWindow = 10 * time.Minute

	// auditLabel is the label of the leases.
	auditLabel = "audit"

	delayMs  = int64(AuditDelay / time.Millisecond)
	windowMs = int64(AuditWindow / time.Millisecond)
)

// AuditStreamConfig configures an AuditStream. All but Held must be set.
type AuditStreamConfig struct {
	Items     awsdb.Items
	Table     string
	ID        func() string    // of the table as it is now: one that was lost and made again has another
	Now       func() time.Time // the clock of the events
	Retention time.Duration    // how long an event can be read, at least
	Held      int              // most keys of events that are held; 0 = limiter.MaxPage
}

// AuditStream is the audit events of all namespaces of a table in the order of their times, as the stream of an
// aggregator, for a table without a change stream. An event stays in the table, and is in the stream as one that has
// expired. It is safe for concurrent use.
//
// The stream has one shard, of the table's id. A position is a time, Unix ms: all events up to then are done. A read
// returns the events of one window, and a record of no item with the position behind them. So a read behind the same
// position returns the same events, and an archive of them has the same name. A window of more than Held events has
// several reads.
type AuditStream struct {
	*Progress

	leases *StreamLeases
	table  table
	cfg    AuditStreamConfig

	mu    sync.Mutex // of a read
	ahead auditAhead
}

var (
	_ aggregator.Source = (*AuditStream)(nil)
	_ aggregator.Leases = (*AuditStream)(nil)
)

// NewAuditStream returns the stream. It makes no call.
func NewAuditStream(cfg AuditStreamConfig) *AuditStream {
	cfg.Held = cmp.Or(cfg.Held, limiter.MaxPage)
	return &AuditStream{
		Progress: NewProgress(cfg.Items, cfg.Table, cfg.Now), leases: NewStreamLeases(cfg.Items, cfg.Table, 0, cfg.Now),
		table: table{items: cfg.Items, name: cfg.Table, loop: awsdb.Goroutines{}}, cfg: cfg,
	}
}

// List implements aggregator.Leases.
func (s *AuditStream) List(ctx context.Context) ([]aggregator.Lease, error) {
	return s.leases.List(ctx, auditLabel)
}

// Write implements aggregator.Leases. A lease stays for good, as it has the position.
func (s *AuditStream) Write(ctx context.Context, before, after aggregator.Lease) error {
	return s.leases.Write(ctx, auditLabel, &before, &after)
}

// Shards implements aggregator.Source.
func (s *AuditStream) Shards(context.Context) ([]aggregator.Shard, error) {
	return []aggregator.Shard{{ID: s.cfg.ID()}}, nil
}

// Follow implements aggregator.Source: the stream does not end.
func (s *AuditStream) Follow(context.Context) (move func(), err error) { return nil, nil } //nolint:nilnil // it is the same stream

// place is an iterator: where a read begins.
type place struct {
	after int64 // Unix ms; 0 = at the oldest event
	// kept says that the read began at the oldest event, and is not yet where no event can have expired. Only events
	// that were there before its begin can be gone.
	kept bool
}

// String returns the iterator.
func (p place) String() string {
	if p.kept {
		return strconv.FormatInt(p.after, 10) + "k"
	}
	return strconv.FormatInt(p.after, 10)
}

// placeOf reads an iterator or a position.
func placeOf(text string) (p place, err error) {
	digits, kept := strings.CutSuffix(text, "k")
	p.kept = kept
	if p.after, err = strconv.ParseInt(digits, 10, 64); err != nil || p.after < 0 {
		return p, fmt.Errorf("%.50q: %w, as it is no time in Unix ms", text, aggregator.ErrPosition)
	}
	return p, nil
}

// begin returns the time of the oldest event that must be there, and that of the newest one that is read.
func (s *AuditStream) begin() (oldest, newest int64) {
	now := s.cfg.Now()
	return now.Add(-s.cfg.Retention).UnixMilli(), windowEnd(now.UnixMilli()-delayMs) - windowMs
}

// windowEnd returns the last ms of the window of a time.
func windowEnd(at int64) int64 { return (at/windowMs+1)*windowMs - 1 }

// errAhead says that the clock was set back behind a position, or that the position was made by a wrong clock.
func errAhead(after, newest int64) error {
	return fmt.Errorf("%w: it is %v ahead of the events that may be read; a clock was set back", aggregator.ErrPosition, time.Duration(after-newest)*time.Millisecond)
}

// Open implements aggregator.Source. A position that is ahead of the clock is none: events may have come behind it.
func (s *AuditStream) Open(_ context.Context, _ string, after aggregator.Sequence) (string, error) {
	s.mu.Lock()
	s.ahead = auditAhead{}
	s.mu.Unlock()
	if after == "" {
		return place{kept: true}.String(), nil
	}
	p, err := placeOf(string(after))
	if err != nil {
		return "", err
	}
	switch oldest, newest := s.begin(); {
	case p.kept:
		return "", fmt.Errorf("%.50q: %w", string(after), aggregator.ErrPosition)
	case p.after > newest+windowMs:
		return "", errAhead(p.after, newest)
	case p.after < oldest:
		return "", expired(p.after, oldest)
	}
	return p.String(), nil
}

// expired is the error of a place behind which events have expired.
func expired(after, oldest int64) error {
	return fmt.Errorf("%w: events of %v before audit.retention may have expired unread", aggregator.ErrTrimmed, time.Duration(oldest-after)*time.Millisecond)
}

// Read implements aggregator.Source.
func (s *AuditStream) Read(ctx context.Context, iterator string) (records []aggregator.Record, next string, err error) {
	p, err := placeOf(iterator)
	if err != nil {
		return nil, "", err
	}
	oldest, newest := s.begin()
	switch {
	case p.after > newest+windowMs:
		return nil, "", fmt.Errorf("%w: %w", aggregator.ErrExpired, errAhead(p.after, newest)) // Open says what is wrong
	case !p.kept && p.after < oldest:
		return nil, "", expired(p.after, oldest)
	case p.after >= newest:
		return nil, iterator, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	events, upTo, err := s.window(ctx, p.after, newest)
	if err != nil {
		return nil, "", err
	}
	due := time.UnixMilli(windowEnd(upTo) + delayMs).UTC()
	if records, err = s.records(ctx, events, due); err != nil {
		return nil, "", err
	}
	records = append(records, aggregator.Record{Sequence: sequenceOf(upTo), Key: "the end of a window of audit events", Time: due, Other: true})
	return records, place{upTo, p.kept && upTo < oldest}.String(), nil
}

func sequenceOf(at int64) aggregator.Sequence { return aggregator.Sequence(strconv.FormatInt(at, 10)) }

// records reads events. One that was deleted meanwhile is left out. due is when they may be read.
func (s *AuditStream) records(ctx context.Context, events []auditEntry, due time.Time) ([]aggregator.Record, error) {
	records := make([]aggregator.Record, 0, len(events)+1)
	for chunk := range slices.Chunk(events, maxBatchGet) {
		keys := make([]schema.Key, len(chunk))
		for i := range chunk {
			keys[i] = chunk[i].key
		}
		within, stop := context.WithTimeout(ctx, streamTimeout)
		found, err := s.table.read(within, keys)
		stop()
		if err != nil {
			return nil, err
		}
		for _, e := range chunk {
			if item := found[e.key]; item != nil {
				records = append(records, aggregator.Record{
					Sequence: sequenceOf(e.at), Key: e.key.String(), Time: due, Other: true, Expired: schema.ArchivedAudit(s.cfg.Table, e.key, item),
				})
			}
		}
	}
	return records, nil
}

// window returns the events of the first window with any behind a place, up to its end; no events and newest without
// any. Of a window with more events than are held it returns the first ones. s.mu is held.
func (s *AuditStream) window(ctx context.Context, after, newest int64) (events []auditEntry, upTo int64, err error) {
	for {
		if fresh := s.ahead.upTo == 0; fresh || after < s.ahead.after || after >= s.ahead.upTo {
			if s.ahead, err = s.fill(ctx, after, newest); err != nil {
				return nil, 0, err
			}
		}
		events = s.ahead.behind(after)
		if len(events) == 0 {
			return nil, s.ahead.upTo, nil
		}
		switch end := windowEnd(events[0].at); {
		case end <= s.ahead.upTo:
			return upToTime(events, end), end, nil
		case s.ahead.after == after: // rule: a window is cut only where one alone has too many events
			return events, s.ahead.upTo, nil
		}
		s.ahead = auditAhead{}
	}
}

// fill reads the keys of the first events of all namespaces behind a place.
func (s *AuditStream) fill(ctx context.Context, after, newest int64) (auditAhead, error) {
	a := auditAhead{after: after, upTo: newest}
	var from map[string]string
	for {
		spaces, next, err := s.page(ctx, schema.QueryNamespaceIDs(s.cfg.Table), from)
		if err != nil {
			return auditAhead{}, err
		}
		for _, item := range spaces {
			k, err := schema.ItemKey(s.cfg.Table, item)
			if err != nil {
				return auditAhead{}, err
			}
			if err := s.collect(ctx, schema.NamespaceOfKey(k), &a); err != nil {
				return auditAhead{}, err
			}
		}
		if from = next; next == nil {
			return a, nil
		}
	}
}

// collect adds the keys of the events of a namespace. Where there are too many, it reads no further than they go.
func (s *AuditStream) collect(ctx context.Context, ns string, a *auditAhead) error {
	q := schema.QueryAuditBetween(s.cfg.Table, ns, a.after, a.upTo)
	at := a.after + 1
	var from map[string]string
	for {
		items, next, err := s.page(ctx, q, from)
		if err != nil {
			return err
		}
		for _, item := range items {
			k, err := schema.ItemKey(s.cfg.Table, item)
			if err != nil {
				return err
			}
			if t, _, err := limiter.ParseAuditID(schema.EventID(k)); err == nil { // else it counts as one of the time before
				at = t.UnixMilli()
			}
			a.events = append(a.events, auditEntry{at, k})
		}
		a.trim(s.cfg.Held)
		if next == nil || at > a.upTo {
			return nil
		}
		from = next
	}
}

// page reads a page of a query.
func (s *AuditStream) page(ctx context.Context, q *dynamodb.QueryInput, from map[string]string) ([]map[string]types.AttributeValue, map[string]string, error) {
	ctx, stop := context.WithTimeout(ctx, streamTimeout)
	defer stop()
	return s.table.page(ctx, q, from, s.cfg.Held)
}
