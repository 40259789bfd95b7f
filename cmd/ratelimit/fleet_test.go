package main

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// told is longer than the time in which a replica sees the writes of others.
const told = 5 * time.Second

// plenty is a limit that admits everything here, and keeps the bucket in use, with or
// without the other limit.
const plenty = 1_000_000

// withRate returns the configuration with another limit, and with plenty.
func withRate(rate string) string {
	return strings.NewReplacer("2/minute", fmt.Sprintf("%s, all: %d/hour", rate, plenty), "rpm: hits", "rpm: hits, all: hits").Replace(programtest.TwoPerMinute)
}

func (r replica) mustReload(t *testing.T, text string) {
	t.Helper()
	if err := r.Reload(t.Context(), programtest.Parsed(t, text)); err != nil {
		t.Fatal(err)
	}
}

// A new file reaches the replicas of a fleet one by one. Meanwhile a bucket is under
// one of both files at a time, for all replicas. When the last replica has the new
// file, the bucket is under that one. One of the two files has the greater hash, so
// each order of hashes is covered by one of both directions.
func TestAFileSpreadsOverTheFleet(t *testing.T) {
	for _, test := range []struct{ name, from, to string }{
		{"lowered", "100/hour", "5/hour"}, {"raised", "5/hour", "100/hour"}, {"added", "unlimited", "5/hour"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newTable(t)
				a, b := startReplica(t, db, withRate(test.from)), startReplica(t, db, withRate(test.from))
				defer a.stop()
				defer b.stop()
				a.ask(t, 1)
				b.ask(t, 1)
				limitOf := func(r replica) int {
					_, answer := r.ask(t, 0)
					return answer.Statuses[0].CurrentLimit.RequestsPerUnit
				}

				a.mustReload(t, withRate(test.to))
				time.Sleep(told) // of the bubble's clock, as below
				limitOf(a)       // whichever has a greater version brings the bucket under its limits
				limitOf(b)
				if x, y := limitOf(a), limitOf(b); x != y && test.from != "unlimited" { // whose file has no limit asks for none
					t.Errorf("half way replica a goes by %d an hour, b by %d", x, y)
				}
				b.mustReload(t, withRate(test.to))
				time.Sleep(told)
				want := map[string]int{"100/hour": 100, "5/hour": 5}[test.to]
				if x, y := limitOf(a), limitOf(b); x != want || y != want {
					t.Errorf("in the end replica a goes by %d an hour, b by %d; want %d", x, y, want)
				}
			})
		})
	}
}

// Two replicas whose files change to and fro, at different times, mint nothing: a
// limit admits one bucket and its refill in all.
func TestFilesThatFlipMintNothing(t *testing.T) {
	for _, test := range []struct {
		name  string
		files [2]string
		most  int
	}{
		{"lowered and raised", [2]string{"60/hour", "{rate: 36/hour, burst: 20}"}, 60},
		{"removed and added", [2]string{"30/hour", "unlimited"}, 30},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db, began := newTable(t), time.Now()
				a, b := startReplica(t, db, withRate(test.files[0])), startReplica(t, db, withRate(test.files[0]))
				defer a.stop()
				defer b.stop()
				admitted := 0
				for round := range 24 {
					file := withRate(test.files[round%2])
					a.mustReload(t, file)
					admitted += burst(t, a, b)
					time.Sleep(time.Duration(round%4) * time.Second) // of the bubble's clock: b may have seen it
					admitted += burst(t, a, b)
					b.mustReload(t, file)
					admitted += burst(t, a, b)
					time.Sleep(told)
					admitted += burst(t, a, b)
				}
				refilled := int(time.Since(began)/time.Minute) + 1 // at most 60 an hour
				if admitted < test.most/2 || admitted > test.most+refilled {
					t.Errorf("%d requests were admitted in %v; want at most %d, and at least half of it to show something", admitted, time.Since(began), test.most+refilled)
				}
			})
		})
	}
}

// burst asks each replica for three requests and returns how many the limit
// admitted, and not only plenty.
func burst(t *testing.T, replicas ...replica) int {
	t.Helper()
	admitted := 0
	for range 3 {
		for _, r := range replicas {
			if ok, answer := r.ask(t, 1); ok && answer.Statuses[0].CurrentLimit.RequestsPerUnit < plenty {
				admitted++
			}
		}
	}
	return admitted
}
