package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// history is audit events of a table, by their ids, and a stream of them.
type history struct {
	t      rapid.TB
	client awsdb.Client
	table  string
	now    time.Time
	ids    []string // with namespaces, in the order of a stream
}

const historyTable = "audited"

func newHistory(t rapid.TB, client awsdb.Client, table string, namespaces int) *history {
	t.Helper()
	h := &history{t: t, client: client, table: table, now: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)}
	if err := CreateTable(context.Background(), client, table); err != nil { // it may be there
		t.Fatalf("CreateTable: %v", err)
	}
	for i := range namespaces {
		h.put(schema.NamespaceItem(schema.NamespaceIDKey(spaceID(i)), schema.Namespace{Name: strconv.Itoa(i), ID: spaceID(i)}, h.now))
	}
	return h
}

func spaceID(i int) string { return fmt.Sprintf("AbCdEfGhI%02d", i) }

func (h *history) put(item attributes) {
	h.t.Helper()
	if _, err := awsdb.ItemsOf(h.client, h.table).Write(context.Background(), schema.PutNew(item)); err != nil {
		h.t.Fatalf("PutItem: %v", err)
	}
}

// event adds an event of a namespace.
func (h *history) event(space int, at time.Time, generation uint64) {
	h.t.Helper()
	e := limiter.AuditEvent{ID: limiter.AuditID(at, generation), Time: at, Action: limiter.ActionPutLimits, Subject: limiter.ResourceLimitsRef("r"), Generation: generation}
	h.put(schema.AuditItem(spaceID(space), &e, 24*time.Hour))
	h.ids = append(h.ids, e.ID+" "+spaceID(space))
}

// stream returns a new stream that reads at a time.
func (h *history) stream(now time.Time, held int) *AuditStream {
	return NewAuditStream(AuditStreamConfig{
		Items: awsdb.ItemsOf(h.client, h.table), Table: h.table, ID: func() string { return "id" }, Now: func() time.Time { return now }, Retention: 24 * time.Hour, Held: held,
	})
}

// eventsRead is one read of a stream.
type eventsRead struct {
	after aggregator.Sequence
	IDs   []string // of the events
	Next  aggregator.Sequence
}

// readFrom opens a stream behind a position, and reads once.
func (h *history) readFrom(s *AuditStream, after aggregator.Sequence) (eventsRead, string) {
	h.t.Helper()
	iterator, err := s.Open(context.Background(), "id", after)
	if err != nil {
		h.t.Fatalf("Open after %q: %v", after, err)
	}
	return h.readAt(s, iterator, after)
}

// readAt reads once, and checks the form of the read: its events are in one window, in front of the mark.
func (h *history) readAt(s *AuditStream, iterator string, after aggregator.Sequence) (eventsRead, string) {
	h.t.Helper()
	records, next, err := s.Read(context.Background(), iterator)
	if err != nil {
		h.t.Fatalf("Read of %q: %v", iterator, err)
	}
	r := eventsRead{after: after}
	for i := range records {
		record := &records[i]
		if !record.Other || record.Problem != nil || (record.Expired == nil) != (i == len(records)-1) {
			h.t.Fatalf("record %d of %d: %+v", i, len(records), record)
		}
		if r.Next = record.Sequence; record.Expired != nil {
			r.IDs = append(r.IDs, record.Expired.Event.ID+" "+record.Expired.Namespace)
			if want := sequenceOf(record.Expired.Event.Time.UnixMilli()); record.Sequence != want {
				h.t.Fatalf("the event %s has the position %s", record.Expired.Event.ID, record.Sequence)
			}
		}
	}
	if len(r.IDs) > 0 {
		first, _, _ := limiter.ParseAuditID(r.IDs[0][:len(limiter.AuditID(h.now, 0))])
		if end := windowEnd(first.UnixMilli()); sequenceOf(end).Compare(r.Next) < 0 {
			h.t.Fatalf("a read from %s on goes to %s, beyond the window to %d", first, r.Next, end)
		}
	}
	return r, next
}

// readAll reads a stream up to its present end.
func (h *history) readAll(s *AuditStream) (all []eventsRead) {
	h.t.Helper()
	r, iterator := h.readFrom(s, "")
	for r.Next != "" {
		all = append(all, r)
		r, iterator = h.readAt(s, iterator, r.Next)
	}
	return all
}

// The stream has each event of each namespace once and in order, up to the newest window that is over. A read behind a
// position has the same events at any later time, whatever was read before.
func TestAuditStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spaces := rapid.IntRange(1, 3).Draw(t, "namespaces")
		h := newHistory(t, dynamofake.New(), historyTable, spaces)
		at := h.now.Add(rapid.SampledFrom([]time.Duration{0, -time.Millisecond, 9 * time.Minute}).Draw(t, "begin"))
		steps := rapid.SliceOfN(rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, time.Second, 4 * time.Minute, time.Hour}), 0, 30).Draw(t, "steps")
		for i, step := range steps {
			at = at.Add(step)
			h.event(rapid.IntRange(0, spaces-1).Draw(t, "namespace"), at, uint64(i+1))
		}
		now := at.Add(rapid.SampledFrom([]time.Duration{0, AuditDelay, AuditDelay + AuditWindow}).Draw(t, "age"))
		end := now.Add(-AuditDelay).Truncate(AuditWindow)
		want := slices.DeleteFunc(slices.Clone(h.ids), func(id string) bool { return id >= limiter.AuditID(end, 0) })
		held := rapid.IntRange(1, 5).Draw(t, "held")
		all := h.readAll(h.stream(now, held))
		var got []string
		for i, r := range all {
			got = append(got, r.IDs...)
			if i > 0 && r.Next.Compare(r.after) <= 0 {
				t.Fatalf("read %d goes from %s to %s", i, r.after, r.Next)
			}
		}
		if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.SortSlices(strings.Compare)); diff != "" {
			t.Fatalf("up to %s (-want +got):\n%s", end, diff)
		}
		if newest := sequenceOf(end.UnixMilli() - 1); len(all) == 0 || all[len(all)-1].Next != newest {
			t.Fatalf("the last position is not %s: %+v", newest, all)
		}
		h.event(0, at.Add(time.Hour), 1000)
		for _, r := range all {
			again, _ := h.readFrom(h.stream(at.Add(3*time.Hour), held), r.after)
			if diff := gocmp.Diff(r, again, cmpopts.IgnoreUnexported(eventsRead{})); diff != "" && len(r.IDs) > 0 {
				t.Fatalf("again behind %q (-first +again):\n%s", r.after, diff)
			}
		}
	})
}

// On a table, too, a window of more events than are held has several reads, a quiet window none, and any other window
// one. What is left out for one namespace is not left out for good.
func TestAuditStreamOfAWindowThatIsFull(t *testing.T) {
	type event struct {
		space   int
		minutes int
	}
	for name, tt := range map[string]struct {
		events []event
		held   int
		reads  []int
	}{
		"full":      {[]event{{0, 0}, {1, 1}, {0, 2}, {1, 3}, {0, 4}, {0, 120}}, 2, []int{2, 2, 1, 1, 0}},
		"in part":   {[]event{{0, 0}, {0, 10}, {0, 11}, {1, 12}}, 3, []int{1, 3, 0}},
		"left out":  {[]event{{0, 4}, {2, 0}, {2, 8}}, 1, []int{1, 1, 1, 0}},
		"without":   {nil, 3, []int{0}},
		"a moment":  {[]event{{0, 0}, {1, 0}, {0, 0}, {0, 1}}, 2, []int{0, 3, 1, 0}}, // one read goes up to the moment, and the next one takes it whole
		"two pages": {[]event{{1, 0}, {1, 1}, {1, 2}, {1, 3}, {0, 5}, {0, 6}}, 3, []int{3, 3, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			eachServer(t, func(t *testing.T, client awsdb.Client, table string) {
				h := newHistory(t, client, table, 3)
				for i, e := range tt.events {
					h.event(e.space, h.now.Add(time.Duration(e.minutes)*time.Minute), uint64(i+1)) // #nosec G115 -- small
				}
				all := h.readAll(h.stream(h.now.Add(3*time.Hour), tt.held))
				sizes := make([]int, len(all))
				for i, r := range all {
					sizes[i] = len(r.IDs)
				}
				if !slices.Equal(sizes, tt.reads) {
					t.Errorf("reads of %d events, want %d", sizes, tt.reads)
				}
			})
		})
	}
}

// A place behind which events have expired is no place to go on from, and neither is one that is ahead of the clock.
// A stream that begins at the oldest event goes on, however old that is.
func TestAuditStreamPlaces(t *testing.T) {
	h := newHistory(t, dynamofake.New(), historyTable, 1)
	h.event(0, h.now, 1)
	position := func(at time.Time) aggregator.Sequence { return sequenceOf(at.UnixMilli()) }
	now := h.now.Add(100 * time.Hour)
	s := h.stream(now, 0)
	for name, tt := range map[string]struct {
		after aggregator.Sequence
		err   error
		says  string
	}{
		"the oldest":           {"", nil, ""},
		"just kept":            {position(now.Add(-24 * time.Hour)), nil, ""},
		"expired":              {position(now.Add(-25 * time.Hour)), aggregator.ErrTrimmed, "1h0m0s before audit.retention"},
		"a window ahead":       {position(now.Add(-AuditDelay)), nil, ""},
		"ahead":                {position(now), aggregator.ErrPosition, "a clock was set back"},
		"no time":              {"1k", aggregator.ErrPosition, "1k"},
		"no number":            {"x", aggregator.ErrPosition, "no time in Unix ms"},
		"a number below zero":  {"-1", aggregator.ErrPosition, "no time in Unix ms"},
		"a number without end": {aggregator.Sequence(strings.Repeat("9", 40)), aggregator.ErrPosition, "no time in Unix ms"},
	} {
		if _, err := s.Open(t.Context(), "id", tt.after); !errors.Is(err, tt.err) || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := s.Read(t.Context(), string(position(now.Add(-25*time.Hour)))); !errors.Is(err, aggregator.ErrTrimmed) {
		t.Errorf("a read that stood still for too long: %v", err)
	}
	if _, _, err := s.Read(t.Context(), string(position(now))); !errors.Is(err, aggregator.ErrExpired) {
		t.Errorf("a read after the clock was set back: %v", err)
	}
	if all := h.readAll(s); len(all) != 2 || len(all[0].IDs) != 1 || len(all[1].IDs) != 0 {
		t.Errorf("from the oldest: %+v", all)
	}
}

// interrupted is a client that something happens to before it reads a batch.
type interrupted struct {
	awsdb.Client

	before func()
}

func (c *interrupted) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, options ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	c.before()
	return c.Client.BatchGetItem(ctx, in, options...)
}

// An event that cannot be read is in the stream, as it is stored. One that is deleted while its window is read is not.
func TestAuditStreamOfOddEvents(t *testing.T) {
	db := dynamofake.New()
	h := newHistory(t, db, historyTable, 1)
	for i := range 3 {
		h.event(0, h.now.Add(time.Duration(i)*time.Second), uint64(i+1))
	}
	k := schema.AuditKey(spaceID(0), "$NEWER:thing", limiter.AuditID(h.now.Add(time.Minute), 9))
	odd := k.Attributes()
	for name, value := range schema.AuditIndexes(spaceID(0), k) {
		odd[name] = avS(value)
	}
	h.put(odd)
	deleted := schema.AuditKey(spaceID(0), schema.AuditSubject(limiter.ResourceLimitsRef("r")), limiter.AuditID(h.now.Add(time.Second), 2))
	h.client = &interrupted{db, func() {
		if _, err := db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &h.table, Key: deleted.Attributes()}); err != nil {
			t.Error(err)
		}
	}}
	s := h.stream(h.now.Add(time.Hour), 0)
	iterator, err := s.Open(t.Context(), "id", "")
	if err != nil {
		t.Fatal(err)
	}
	records, _, err := s.Read(t.Context(), iterator)
	if err != nil || len(records) != 4 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	if e := records[2].Expired; e == nil || e.Problem == nil || e.Item["SK"] != k.SK || e.Event.ID != limiter.AuditID(h.now.Add(time.Minute), 9) {
		t.Errorf("the odd event: %+v", e)
	}
}
