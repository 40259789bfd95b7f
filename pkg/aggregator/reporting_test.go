package aggregator

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// desk keeps the reports of an aggregator, in order.
type desk struct {
	mu   sync.Mutex
	all  []Progress
	at   []time.Time
	err  error
	hang bool
}

func (d *desk) Report(ctx context.Context, p *Progress) error {
	d.mu.Lock()
	err, hang := d.err, d.hang
	d.all, d.at = append(d.all, *p), append(d.at, time.Now())
	d.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return errors.Join(err, p.Check())
}

func (d *desk) last() Progress {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all[len(d.all)-1]
}

// A poller reports at its start, every 15 seconds, and at its end. A report says how far it is.
func TestReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, d := newRig(t), new(desk)
		r.add("s", "", r.fleet, "k", 6)
		began := time.Now()
		_, stop := r.start("a", func(c *Config) { c.Reports, c.ReportID = d, "one" })
		synctest.Wait()
		if p := d.last(); p.ID != "one" || p.Stopped || p.Function || p.Problem != "" {
			t.Errorf("at the start: %+v", p)
		}
		time.Sleep(time.Minute + time.Second)
		if p := d.last(); p.Shards != 1 || p.Behind > 2*DefaultIdle || p.Problem != "" {
			t.Errorf("after a minute: %+v", p)
		}
		r.fails(func(*Change) (bool, error) { return false, errBroken })
		r.follow("s", time.Now())
		time.Sleep(10 * time.Minute)
		p := d.last()
		if p.Behind < 9*time.Minute || p.Behind > 11*time.Minute || !strings.HasPrefix(p.Problem, "shard s: usage cannot be written for ") {
			t.Errorf("after ten minutes without writes: %+v", p)
		}
		r.fails(nil)
		time.Sleep(time.Minute)
		if p := d.last(); p.Problem != "" || p.Behind > time.Minute {
			t.Errorf("after the failure: %+v", p)
		}
		want := int(time.Since(began)/ReportEvery) + 1
		stop()
		if p := d.last(); !p.Stopped || p.Shards != 0 {
			t.Errorf("at the end: %+v", p)
		}
		if n := len(d.all) - 1; n != want {
			t.Errorf("%d reports, want %d and the last one", n, want)
		}
	})
}

// A table without a stream is a problem of the report.
func TestReportsOfATableWithoutAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, d := newRig(t), new(desk)
		r.add("s", "", r.fleet, "k", 6)
		_, stop := r.start("a", func(c *Config) { c.Reports, c.ReportID = d, "one" })
		time.Sleep(time.Minute)
		r.replace(true)
		time.Sleep(5 * time.Minute)
		if p := d.last(); !strings.Contains(p.Problem, "the table has no stream") {
			t.Errorf("%+v", p)
		}
		stop()
	})
}

// Reports that fail, or hang, hold up neither records nor the end.
func TestReportsThatFail(t *testing.T) {
	for name, d := range map[string]*desk{"failing": {err: limiter.ErrUnavailable}, "hanging": {hang: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.add("s", "", r.fleet, "k", 6)
				_, stop := r.start("a", func(c *Config) { c.Reports, c.ReportID = d, "one" })
				time.Sleep(time.Minute)
				r.counted("beside the reports", 6)
				began := time.Now()
				stop()
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("the end took %v", took)
				}
			})
		})
	}
}

// A report that none may write is refused, before the poller starts as well.
func TestReportsRefused(t *testing.T) {
	for name, p := range map[string]Progress{
		"no id": {}, "an id in upper case": {ID: "A"}, "a long problem": {ID: "a", Problem: strings.Repeat("x", MaxProblem+1)}, "a negative lag": {ID: "a", Behind: -1}, "no number of shards": {ID: "a", Shards: -1},
	} {
		if err := p.Check(); !errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := newRig(t)
	if _, err := New(Config{Source: r.stream, Snapshots: r.to, Leases: r.leases, Owner: "o", Reports: new(desk)}); !errors.Is(err, limiter.ErrInvalid) {
		t.Errorf("a poller without an id: %v", err)
	}
}
