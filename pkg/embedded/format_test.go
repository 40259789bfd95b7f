package embedded

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// format1 returns a data file that a program of format 1 has left. At 9:30 and at 10:30 entity
// ada took 350 and 7 tokens of tph by three requests, each with one token of rpd.
func format1(t *testing.T) []byte {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "format1.db.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	in, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	image, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// usageByHour lists the usage of entity ada by hour.
func usageByHour(t *testing.T, s *Store) []limiter.UsageSnapshot {
	t.Helper()
	page, err := s.ListUsage(t.Context(), "default", limiter.UsageFilter{Entity: "ada"}, limiter.Page{})
	if err != nil {
		t.Fatal(err)
	}
	return page.Items
}

// A file of format 1 opens with all that it has, and is one of format 2 then. Its usage has no
// events, and those of the next ops are counted.
func TestAFileOfFormat1IsUpgraded(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ratelimit.db")
	if err := os.WriteFile(path, format1(t), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := datafile.Verify(path); err != nil || found.Format != 1 {
		t.Fatalf("the file before: %+v, %v; want format 1", found, err)
	}
	begin := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	now := begin.Add(100 * time.Minute)
	s := openAt(t, dir, now)
	limits := limitsOf(t, limiter.PerDay("rpd", 1000), limiter.PerHour("tph", 100_000))
	op := opOf("ada", limits, 1)
	op.Bucket.Resource = "gpt-4"
	check := func(when string, events int64) {
		t.Helper()
		snapshot := func(hour int, rpd, tph, events int64) limiter.UsageSnapshot {
			return limiter.UsageSnapshot{
				Entity: "ada", Resource: "gpt-4", Start: begin.Add(time.Duration(hour) * time.Hour), Events: events,
				Limits: []limiter.LimitUsage{{Limit: "rpd", Tokens: rpd * limiter.Milli}, {Limit: "tph", Tokens: tph * limiter.Milli}},
			}
		}
		want := []limiter.UsageSnapshot{snapshot(0, 2, 350, 0), snapshot(1, 1+events, 7+events, events)}
		if diff := cmp.Diff(want, usageByHour(t, s)); diff != "" {
			t.Errorf("%s: usage (-want +got):\n%s", when, diff)
		}
		if got, err := s.Get(t.Context(), "default", limiter.SystemLimitsRef()); err != nil || got.Limits.Hash() != limits.Hash() {
			t.Errorf("%s: limits of the system %v, %v; want %v", when, got.Limits, err, limits)
		}
	}
	check("opened", 0)
	mustTake(t, s, now, true, op)
	check("used", 1)
	if got, want := op.Spends[0].Bucket.Tokens, 999*limiter.Milli; got != int64(want) {
		t.Errorf("%d millitokens of rpd are left, want %d", got, want)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, err := datafile.Verify(path); err != nil || found.Format != 2 {
		t.Errorf("the file after: %+v, %v; want format 2", found, err)
	}
	s = openAt(t, dir, now)
	check("opened again", 1)
}

// A backup of format 1 is restored like one of this format.
func TestABackupOfFormat1IsRestored(t *testing.T) {
	now := time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC)
	s := openAt(t, t.TempDir(), now)
	if err := s.Restore(t.Context(), bytes.NewReader(format1(t))); err != nil {
		t.Fatal(err)
	}
	found := usageByHour(t, s)
	tokens := make([]int64, 0, len(found))
	for _, u := range found {
		tokens = append(tokens, u.Limits[1].Tokens/limiter.Milli)
	}
	if diff := cmp.Diff([]int64{350, 7}, tokens); diff != "" {
		t.Errorf("usage of tph by hour (-want +got):\n%s", diff)
	}
	if e, err := s.Get(t.Context(), "default", limiter.EntityRef("ada")); err != nil || e.Entity == nil || e.Entity.Name != "Ada" {
		t.Errorf("entity %+v, %v; want Ada", e.Entity, err)
	}
}
