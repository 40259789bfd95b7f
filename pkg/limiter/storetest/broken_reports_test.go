package storetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// memoryReports are reports in memory, which can be broken.
type memoryReports struct {
	*reference

	now   func() time.Time
	check func(replica string, body []byte) error
	age   time.Duration
	keep  bool // the first report of a replica stays
	text  bool // bodies are text
	race  bool // of writes at once some are lost
	open  bool // also after Close

	mu     sync.Mutex
	all    map[string]limiter.Report
	times  map[string]time.Time // when they were written
	closed bool
}

func (m *memoryReports) Close(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = !m.open
	return m.reference.Close(ctx)
}

func (m *memoryReports) WriteReport(_ context.Context, replica string, body []byte) error {
	if err := m.check(replica, body); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, found := m.all[replica]
	switch {
	case m.closed:
		return limiter.ErrClosed
	case found && m.keep, m.race && len(m.all) > 10:
		return nil
	case m.text:
		body = []byte(string([]rune(string(body))))
	}
	m.all[replica], m.times[replica] = limiter.Report{Replica: replica, Body: body}, m.now()
	return nil
}

func (m *memoryReports) ReadReports(context.Context) ([]limiter.Report, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, limiter.ErrClosed
	}
	var all []limiter.Report
	for _, r := range m.all {
		if r.Age = m.now().Sub(m.times[r.Replica]); r.Age < m.age {
			all = append(all, r)
		}
	}
	return all, nil
}

// tryReports runs a case against reports in memory that are broken, and returns its failures.
func tryReports(t *testing.T, c reportCheck, breakIt func(*memoryReports)) []string {
	t.Helper()
	clock := newSetClock()
	s := &memoryReports{reference: newReference(), now: clock.now, check: limiter.CheckReport, age: limiter.ReportAge, all: map[string]limiter.Report{}, times: map[string]time.Time{}}
	breakIt(s)
	return try(t, check{run: func(t T, _ limiter.Store) { c.run(t, s, clock) }}, s)
}

// Each case passes with reports that keep the contract, and fails with some that break it.
func TestBrokenReportsFail(t *testing.T) {
	broken := map[string]func(*memoryReports){
		"reports/the last one of each replica": func(m *memoryReports) { m.keep = true },
		"reports/any bytes":                    func(m *memoryReports) { m.text = true },
		"reports/refused":                      func(m *memoryReports) { m.check = func(string, []byte) error { return nil } },
		"reports/expired":                      func(m *memoryReports) { m.age *= 2 },
		"reports/many at once":                 func(m *memoryReports) { m.race = true },
		"reports/closed":                       func(m *memoryReports) { m.open = true },
	}
	for _, c := range reportChecks() {
		if failures := tryReports(t, c, func(*memoryReports) {}); len(failures) > 0 {
			t.Errorf("%s fails without a reason: %v", c.name, failures)
		}
		if breakIt := broken[c.name]; breakIt == nil || len(tryReports(t, c, breakIt)) == 0 {
			t.Errorf("nothing shows that %s can fail", c.name)
		}
	}
}
