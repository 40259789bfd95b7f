package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// ReportStore is the store of a fleet, whose replicas tell each other of themselves.
type ReportStore interface {
	limiter.Store
	limiter.Reports
}

// reportCheck is one case of RunReports. It is run with a store of its own, whose clock the case sets.
type reportCheck struct {
	name string
	run  func(t T, s ReportStore, clock *setClock)
}

// setClock is a clock that a case sets. It begins with the time of the machine, which servers compare with theirs.
type setClock struct {
	begin time.Time
	ms    atomic.Int64 // since then
}

func newSetClock() *setClock { return &setClock{begin: time.Now().Truncate(time.Millisecond)} }

// now returns the time in the form of time.Now.
func (c *setClock) now() time.Time {
	return c.begin.Add(time.Duration(c.ms.Load()) * time.Millisecond)
}

func reportChecks() []reportCheck {
	return []reportCheck{
		{"reports/the last one of each replica", checkLastReports},
		{"reports/any bytes", checkReportBytes},
		{"reports/refused", checkReportsRefused},
		{"reports/expired", checkReportsExpired},
		{"reports/many at once", checkManyReports},
		{"reports/closed", checkReportsClosed},
	}
}

// RunReports tests the stores that open returns against the contract of limiter.Reports. Each case has a fresh
// store, which goes by the clock now and is closed after it.
func RunReports(t *testing.T, open func(t *testing.T, now func() time.Time) ReportStore) {
	t.Helper()
	for _, c := range reportChecks() {
		t.Run(c.name, func(t *testing.T) {
			clock := newSetClock()
			s := open(t, clock.now)
			defer closeStore(t, s)
			c.run(t, s, clock)
		})
	}
}

// write stores a report.
func write(t T, s limiter.Reports, replica, body string) {
	t.Helper()
	if err := s.WriteReport(t.Context(), replica, []byte(body)); err != nil {
		t.Fatalf("WriteReport of %s: %v", replica, err)
	}
}

// wantReports requires bodies by replica, and returns their ages.
func wantReports(t T, s limiter.Reports, want map[string]string) map[string]time.Duration {
	t.Helper()
	all, err := s.ReadReports(t.Context())
	if err != nil {
		t.Fatalf("ReadReports: %v", err)
	}
	ages := make(map[string]time.Duration, len(all))
	for _, r := range all {
		body, known := want[r.Replica]
		if _, twice := ages[r.Replica]; twice || !known || body != string(r.Body) {
			t.Errorf("report of %s with %d bytes %.40q; want %d bytes %.40q, once", r.Replica, len(r.Body), r.Body, len(body), body)
		}
		ages[r.Replica] = r.Age
	}
	for replica := range want {
		if _, found := ages[replica]; !found {
			t.Errorf("there is no report of %s", replica)
		}
	}
	return ages
}

// checkLastReports: each replica has one report, with its age.
func checkLastReports(t T, s ReportStore, clock *setClock) {
	wantReports(t, s, nil)
	write(t, s, "a", "first of a")
	write(t, s, "b", "of b")
	wantReports(t, s, map[string]string{"a": "first of a", "b": "of b"})
	clock.ms.Store(15_001)
	write(t, s, "a", "second")
	clock.ms.Store(15_002)
	ages := wantReports(t, s, map[string]string{"a": "second", "b": "of b"})
	if want := map[string]time.Duration{"a": time.Millisecond, "b": 15_002 * time.Millisecond}; !maps.Equal(ages, want) {
		t.Errorf("ages %v, want %v", ages, want)
	}
}

// checkReportBytes: a body comes back as it was, also with all bytes and the greatest length.
func checkReportBytes(t T, s ReportStore, _ *setClock) {
	every := make([]byte, 0, limiter.MaxReport)
	for i := range limiter.MaxReport {
		every = append(every, byte(i))
	}
	longest := strings.Repeat("z", limiter.MaxReplicaLength)
	write(t, s, longest, string(every))
	write(t, s, "0-9", "\x00")
	wantReports(t, s, map[string]string{longest: string(every), "0-9": "\x00"})
}

// checkReportsRefused: nothing is stored of a report that may not be.
func checkReportsRefused(t T, s ReportStore, _ *setClock) {
	for what, r := range map[string]limiter.Report{
		"no id":                {Body: []byte("b")},
		"an id in upper case":  {Replica: "A", Body: []byte("b")},
		"an id with separator": {Replica: "a#b", Body: []byte("b")},
		"a long id":            {Replica: strings.Repeat("a", limiter.MaxReplicaLength+1), Body: []byte("b")},
		"no body":              {Replica: "a"},
		"a long body":          {Replica: "a", Body: bytes.Repeat([]byte("b"), limiter.MaxReport+1)},
	} {
		if err := s.WriteReport(t.Context(), r.Replica, r.Body); !errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("%s: %v, want %v", what, err, limiter.ErrInvalid)
		}
	}
	wantReports(t, s, nil)
}

// checkReportsExpired: a report is there until it is limiter.ReportAge old. A read of expired ones harms no newer ones.
func checkReportsExpired(t T, s ReportStore, clock *setClock) {
	const age = int64(limiter.ReportAge / time.Millisecond)
	for i := range 10 {
		write(t, s, fmt.Sprint("old-", i), "old")
	}
	clock.ms.Store(1000)
	write(t, s, "new", "new")
	clock.ms.Store(age - 1)
	if all, err := s.ReadReports(t.Context()); err != nil || len(all) != 11 {
		t.Errorf("%d reports, %v; want 11", len(all), err)
	}
	clock.ms.Store(age)
	for range 4 { // a read may delete some
		wantReports(t, s, map[string]string{"new": "new"})
	}
	write(t, s, "old-0", "again")
	wantReports(t, s, map[string]string{"new": "new", "old-0": "again"})
}

// checkManyReports: replicas that write at once lose no report.
func checkManyReports(t T, s ReportStore, _ *setClock) {
	const replicas = 20
	want := make(map[string]string, replicas)
	var group errgroup.Group
	for i := range replicas {
		replica, body := fmt.Sprint("r", i), strings.Repeat("b", i+1)
		want[replica] = body
		group.Go(func() error { return s.WriteReport(t.Context(), replica, []byte(body)) })
	}
	if err := group.Wait(); err != nil {
		t.Fatalf("WriteReport: %v", err)
	}
	wantReports(t, s, want)
}

// checkReportsClosed: after Close every call fails.
func checkReportsClosed(t T, s ReportStore, _ *setClock) {
	write(t, s, "a", "b")
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteReport(t.Context(), "a", []byte("b")); !errors.Is(err, limiter.ErrClosed) {
		t.Errorf("WriteReport after Close: %v, want %v", err, limiter.ErrClosed)
	}
	if _, err := s.ReadReports(t.Context()); !errors.Is(err, limiter.ErrClosed) {
		t.Errorf("ReadReports after Close: %v, want %v", err, limiter.ErrClosed)
	}
}
