package embedded

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func openAt(t *testing.T, dir string, now time.Time) *Store {
	t.Helper()
	s, err := Open(dir, Config{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// left returns the tokens that a peek finds in every limit of a bucket.
func left(t *testing.T, s *Store, now time.Time, entity string, limits *limiter.Limits, generation uint64) []int64 {
	t.Helper()
	op := opOf(entity, limits, 0)
	op.Generation = generation
	if _, err := s.Take(t.Context(), now, []limiter.Op{op}); err != nil {
		t.Fatal(err)
	}
	all := make([]int64, 0, len(op.Spends))
	for _, sp := range op.Spends {
		all = append(all, sp.Bucket.Tokens/limiter.Milli)
	}
	return all
}

func putLimits(t *testing.T, s *Store, entity string, limits *limiter.Limits) {
	t.Helper()
	if err := s.PutLimits(t.Context(), "default", limiter.EntityLimitsRef(entity, limiter.DefaultResource), limiter.Record{Limits: limits}); err != nil {
		t.Fatal(err)
	}
}

// stored returns the limits of an entity as the store has them.
func stored(t *testing.T, s *Store, entity string) (text string, generation uint64) {
	t.Helper()
	records := make([]limiter.Record, 1)
	generation, err := s.Read(t.Context(), "default", []limiter.Ref{limiter.EntityLimitsRef(entity, limiter.DefaultResource)}, records)
	if err != nil {
		t.Fatal(err)
	}
	return records[0].Detail(), generation
}

func actions(t *testing.T, s *Store, ref limiter.Ref) (all []string) {
	t.Helper()
	for _, e := range slices.Backward(eventsOf(t, s, "default", ref)) {
		all = append(all, e.Action)
	}
	return all
}

// backupOf returns the file of a store that has been closed in order.
func backupOf(t *testing.T, dir string, s *Store) []byte {
	t.Helper()
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "ratelimit.db"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Records become those of the backup. No bucket gains tokens, in memory or in the file.
func TestRestoreWhileServing(t *testing.T) {
	hour, day := limitsOf(t, limiter.PerHour("rpm", 10)), limitsOf(t, limiter.PerDay("rpm", 5))
	dir := t.TempDir()
	s := openAt(t, dir, t0)
	putLimits(t, s, "ada", hour)
	mustTake(t, s, t0, true, opOf("less in memory", hour, 2))
	mustTake(t, s, t0, true, opOf("less in the backup", hour, 7))
	mustTake(t, s, t0, true, opOf("only in the backup", hour, 4))
	mustSettle(t, s, t0, true, markOf("then", "a", 1000))
	theirs, err := s.Secret(t.Context(), "key", []byte(strings.Repeat("s", 32)))
	if err != nil {
		t.Fatal(err)
	}
	data := backupOf(t, dir, s)

	dir = t.TempDir()
	s = openAt(t, dir, t0)
	putLimits(t, s, "ada", day)
	putLimits(t, s, "eve", day)
	mustTake(t, s, t0, true, opOf("less in memory", hour, 6))
	mustTake(t, s, t0, true, opOf("less in the backup", hour, 1))
	mustTake(t, s, t0, true, opOf("only in memory", hour, 3))
	mustSettle(t, s, t0, true, markOf("now", "a", 1000))
	secret, err := s.Secret(t.Context(), "key", []byte(strings.Repeat("t", 32)))
	if err != nil || bytes.Equal(secret, theirs) {
		t.Fatalf("%q, %v", secret, err)
	}
	_, before := stored(t, s, "ada")
	if err := s.Restore(t.Context(), bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}

	check := func(s *Store) {
		t.Helper()
		got, generation := stored(t, s, "ada")
		if got != "rpm 10/hour" || generation <= before {
			t.Errorf("ada has %q in generation %d; want rpm 10/hour, after %d", got, generation, before)
		}
		if got, _ := stored(t, s, "eve"); got != "" {
			t.Errorf("eve has %q, want nothing", got)
		}
		if diff := cmp.Diff([]string{limiter.ActionPutLimits}, actions(t, s, limiter.EntityRef("ada"))); diff != "" {
			t.Errorf("audit of ada (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{limiter.ActionRestore}, actions(t, s, limiter.SystemLimitsRef())); diff != "" {
			t.Errorf("audit of the system (-want +got):\n%s", diff)
		}
		for entity, want := range map[string]int64{"less in memory": 4, "less in the backup": 3, "only in the backup": 6, "only in memory": 7} {
			if got := left(t, s, t0, entity, hour, generation)[0]; got != want {
				t.Errorf("%s: %d tokens, want %d", entity, got, want)
			}
		}
		for _, id := range []string{"then", "now"} {
			mustSettle(t, s, t0, false, markOf(id, "b", 1000))
		}
		if got, err := s.Secret(t.Context(), "key", []byte(strings.Repeat("u", 32))); err != nil || !bytes.Equal(got, secret) {
			t.Errorf("the secret is %q, %v; want %q as before", got, err, secret)
		}
		for entity, want := range map[string]int64{"less in memory": 6, "less in the backup": 7, "only in the backup": 4, "only in memory": 3} {
			if used := usageOf(t, s, "default", entity, "r", limiter.UsageDay, t0); used["rpm"] != want*limiter.Milli {
				t.Errorf("%s: used %v; want %d", entity, used, want)
			}
		}
	}
	check(s)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(openAt(t, dir, t0))
}

// Limits that the live bucket does not have return with the balance of the backup at most.
func TestRestoreOfOtherLimits(t *testing.T) {
	both := limitsOf(t, limiter.PerHour("rpm", 10), limiter.PerHour("tpm", 100))
	dir := t.TempDir()
	s := openAt(t, dir, t0)
	op := opOf("ada", both, 8)
	mustTake(t, s, t0, true, op)
	data := backupOf(t, dir, s)

	s = openAt(t, t.TempDir(), t0)
	mustTake(t, s, t0, true, opOf("ada", limitsOf(t, limiter.PerHour("rpm", 20)), 1))
	if err := s.Restore(t.Context(), bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{2, 92}, left(t, s, t0, "ada", both, 5)); diff != "" {
		t.Errorf("tokens of rpm and tpm (-want +got):\n%s", diff)
	}
}

// A bucket of the backup refills until now, and no further than its capacity.
func TestRestoreOfAnOldBackup(t *testing.T) {
	limits := limitsOf(t, limiter.PerHour("rpm", 10))
	dir := t.TempDir()
	s := openAt(t, dir, t0)
	mustTake(t, s, t0, true, opOf("ada", limits, 9), opOf("bob", limits, 9))
	data := backupOf(t, dir, s)
	later := t0.Add(30 * time.Minute)
	s = openAt(t, t.TempDir(), later)
	mustTake(t, s, later, true, opOf("bob", limits, 1))
	if err := s.Restore(t.Context(), bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	for _, entity := range []string{"ada", "bob"} {
		if got := left(t, s, later, entity, limits, 1)[0]; got != 6 {
			t.Errorf("%s: %d tokens, want 6: one at the backup, and five since", entity, got)
		}
	}
}

// A restore during decisions lowers balances, and raises none.
func TestRestoreAmidDecisions(t *testing.T) {
	limits := limitsOf(t, limiter.PerDay("rpm", 5000))
	dir := t.TempDir()
	s := openAt(t, dir, t0)
	mustTake(t, s, t0, true, opOf("ada", limits, 4900))
	data := backupOf(t, dir, s)

	s = openAt(t, t.TempDir(), t0)
	var given, since atomic.Int64
	var restored atomic.Bool
	var takers sync.WaitGroup
	for range 4 {
		takers.Go(func() {
			for {
				after := restored.Load()
				ok, err := s.Take(t.Context(), t0, []limiter.Op{opOf("ada", limits, 1)})
				switch {
				case err != nil:
					t.Error(err)
					return
				case !ok:
					return
				}
				given.Add(1)
				if after {
					since.Add(1)
				}
			}
		})
	}
	for given.Load() < 500 {
		runtime.Gosched()
	}
	if err := s.Restore(t.Context(), bytes.NewReader(data)); err != nil {
		t.Error(err)
	}
	restored.Store(true)
	takers.Wait()
	if given.Load() > 5000 || since.Load() > 100 {
		t.Errorf("%d tokens were given, %d of them after the restore; want 5000 and 100 at most", given.Load(), since.Load())
	}
}

func TestRestoreRefuses(t *testing.T) {
	limits := limitsOf(t, limiter.PerHour("rpm", 10))
	dir := t.TempDir()
	s := openAt(t, dir, t0)
	mustTake(t, s, t0, true, opOf("ada", limits, 9), opOf("bob", limits, 9))
	data := backupOf(t, dir, s)
	damaged := bytes.ReplaceAll(data, []byte("ada"), []byte("eda"))

	dir = t.TempDir()
	s, err := Open(dir, Config{Now: func() time.Time { return t0 }, MaxBuckets: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context()) //nolint:errcheck // checked by other tests
	putLimits(t, s, "ada", limits)
	mustTake(t, s, t0, true, opOf("ada", limits, 1))
	memory := newStore(t, Config{})
	for _, test := range []struct {
		name  string
		store *Store
		data  io.Reader
		want  error
		text  string
	}{
		{"without a file", memory, bytes.NewReader(data), limiter.ErrInvalid, "no data file"},
		{"nothing", s, strings.NewReader(""), limiter.ErrInvalid, "is damaged"},
		{"a cut backup", s, bytes.NewReader(data[:len(data)-4096]), limiter.ErrInvalid, "is damaged"},
		{"a damaged backup", s, bytes.NewReader(damaged), limiter.ErrInvalid, "is damaged"},
		{"more buckets than fit", s, bytes.NewReader(data), limiter.ErrInvalid, "raise max_buckets"},
		{"a backup that breaks off", s, io.MultiReader(bytes.NewReader(data[:100]), broken{}), limiter.ErrUnavailable, "the connection broke"},
	} {
		if err := test.store.Restore(t.Context(), test.data); !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: got %v, want %v with %q", test.name, err, test.want, test.text)
		}
	}
	if got := left(t, s, t0, "ada", limits, 1)[0]; got != 9 {
		t.Errorf("ada has %d tokens, want 9 as before", got)
	}
	if got, _ := stored(t, s, "ada"); got != "rpm 10/hour" {
		t.Errorf("ada has %q, want the stored name", got)
	}
	if _, err := os.Stat(filepath.Join(dir, receivedName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the received file still exists: %v", err)
	}
}

// One backup at a time is restored. In a full store a key that shares a bucket has no more than
// that bucket.
func TestRestoreIntoAFullStore(t *testing.T) {
	day, other := limitsOf(t, limiter.PerDay("rpd", 5)), limitsOf(t, limiter.PerDay("rpd", 3))
	for name, then := range map[string]*limiter.Limits{"the same limits": day, "other limits": other} {
		for _, key := range []string{"shares", strings.Repeat("a long name ", 30)} {
			dir := t.TempDir()
			s := openAt(t, dir, t0)
			mustTake(t, s, t0, true, opOf(key, day, 1))
			data := backupOf(t, dir, s)
			s = openAt(t, t.TempDir(), t0)
			s.cfg.MaxBuckets = 1
			mustTake(t, s, t0, true, opOf("has one", day, 1), opOf(key, then, 3))
			if err := s.Restore(t.Context(), bytes.NewReader(data)); err != nil {
				t.Fatal(err)
			}
			if got, most := left(t, s, t0, key, then, 1), then.At(0).Capacity-3; got[0] > most {
				t.Errorf("%s, a name of %d bytes: %d tokens are left, want %d at most", name, len(key), got[0], most)
			}
		}
	}
}

func TestRestoreTwice(t *testing.T) {
	s := openAt(t, t.TempDir(), t0)
	from, to := io.Pipe()
	first := make(chan error, 1)
	go func() { first <- s.Restore(t.Context(), from) }()
	if _, err := to.Write([]byte("it has begun")); err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(t.Context(), strings.NewReader("")); !errors.Is(err, limiter.ErrUnavailable) || !strings.Contains(err.Error(), "another backup") {
		t.Errorf("got %v", err)
	}
	_ = to.Close()
	if err := <-first; !errors.Is(err, limiter.ErrInvalid) {
		t.Errorf("the first: %v", err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the connection broke") }

// A lowered balance is covered only when the file has it. Otherwise a crash would raise it again.
func TestLoweredBucketsAreNotCovered(t *testing.T) {
	limits := limitsOf(t, limiter.PerHour("rpm", 100))
	s := openAt(t, t.TempDir(), t0)
	for range 3 {
		mustTake(t, s, t0, true, opOf("ada", limits, 1))
	}
	if err := s.disk.ask().wait(t.Context()); err != nil { // the block that they have requested
		t.Fatal(err)
	}
	low, full := opOf("ada", limits, 0), opOf("ada", limits, 0)
	to := newBucket(&low, t0.UnixMilli())
	to.balance(0).Tokens = 50 * limiter.Milli
	for _, step := range []struct {
		to              *bucket
		lowered, covers bool
	}{{newBucket(&full, t0.UnixMilli()), false, true}, {to, true, false}, {to, false, false}} {
		hash := s.hash(&low.Bucket)
		sh := &s.shards[hash%shardCount]
		sh.mu.Lock()
		b := sh.buckets[hash]
		lowered := b.lower(step.to, false, t0.UnixMilli())
		covers := b.block.span(0).covers(0, limiter.Milli)
		sh.mu.Unlock()
		if lowered != step.lowered || covers != step.covers {
			t.Errorf("lowered is %t, covers is %t; want %t, %t", lowered, covers, step.lowered, step.covers)
		}
	}
}
