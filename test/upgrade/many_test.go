package upgrade_test

import (
	"strconv"
	"testing"
	"time"
)

// many is many buckets that are taken from one by one.
type many struct {
	*testing.T

	keys    []string
	taken   map[string]uint32 // tokens of calls that were admitted
	unknown map[string]uint32 // tokens of calls without an answer, or without a decision
}

func newMany(t *testing.T) *many {
	m := &many{T: t, taken: make(map[string]uint32), unknown: make(map[string]uint32)}
	for i := range manyKeys {
		m.keys = append(m.keys, strconv.Itoa(i))
	}
	return m
}

// take takes tokens of a bucket.
func (m *many) take(r *replica, key string, hits uint32) answer {
	m.Helper()
	a := r.ask(m.Context(), time.Now(), "many", key, hits)
	switch {
	case a.failed, a.policy:
		m.unknown[key] += hits
	case a.admitted:
		m.taken[key] += hits
	}
	return a
}

// takeFrom takes one token of each bucket from one replica, which is killed meanwhile; then
// from another one.
func (m *many) takeFrom(one, two *replica, kill func()) {
	m.Helper()
	killed := make(chan struct{})
	for i, key := range m.keys {
		if i == len(m.keys)/3 {
			go func() { // ends before takeFrom
				defer close(killed)
				kill()
			}()
		}
		if a := m.take(one, key, 1); a.failed {
			one = two
			m.take(one, key, 1)
		}
	}
	<-killed
}

// takeAll takes tokens one by one until each bucket denies: then as many were taken in all as
// there were.
func (m *many) takeAll(r *replica) {
	m.Helper()
	for _, key := range m.keys {
		m.drain(r, key)
		if got, unknown := m.taken[key], m.unknown[key]; got > manyBurst || got+unknown < manyBurst {
			m.Errorf("bucket %s gave %d tokens, and perhaps %d more; want %d", key, got, unknown, manyBurst)
		}
	}
}

// drain takes tokens one by one until they are denied. A call without a decision is made
// again, a while later.
func (m *many) drain(r *replica, key string) {
	m.Helper()
	const most = 10 * time.Second
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for began := time.Now(); ; {
		a := m.take(r, key, 1)
		switch {
		case a.policy || a.failed:
			<-pause.C
		case !a.admitted:
			return
		}
		if time.Since(began) > most || m.taken[key] > manyBurst {
			m.Fatalf("bucket %s has no end after %v, and gave %d", key, most, m.taken[key])
		}
	}
}
