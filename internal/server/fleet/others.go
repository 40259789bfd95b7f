package fleet

import (
	"context"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Live is for how long a replica, or an aggregator, is shown after its last report.
const Live = time.Minute

// others are the reports of the other replicas, as they were read last.
type others struct {
	asking

	id      string // of this replica
	reports limiter.Reports
	known   []report // mu guards it
}

func newOthers(cfg *Config, id string) *others {
	return &others{asking: newAsking(cfg), id: id, reports: cfg.Reports}
}

// list returns the reports of the other replicas, of the last limiter.ReportAge. After a failure those of before are
// left. A caller that leaves gets those, too.
func (o *others) list(ctx context.Context) []report {
	if o.reports == nil {
		return nil
	}
	var stored []limiter.Report
	o.ask(ctx, "the reports of other replicas could not be read", func(ctx context.Context) (err error) {
		stored, err = o.reports.ReadReports(ctx)
		return err
	}, func(at time.Time) { o.take(at, stored) })
	return o.recent()
}

// take notes reports that were read. o.mu is held.
func (o *others) take(at time.Time, stored []limiter.Report) {
	o.known = make([]report, 0, len(stored))
	for i := range stored {
		if stored[i].Replica == o.id {
			continue
		}
		if r, err := decode(&stored[i], at.Add(-stored[i].Age)); err == nil { // one of another version is not shown
			o.known = append(o.known, r)
		}
	}
}

// recent returns the reports that are not too old.
func (o *others) recent() []report {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	all := make([]report, 0, len(o.known))
	for i := range o.known {
		if now.Sub(o.known[i].replica.Seen) < limiter.ReportAge {
			all = append(all, o.known[i])
		}
	}
	return all
}

// write stores the report of this replica, once.
func (o *others) write(ctx context.Context, body []byte) {
	o.mu.Lock()
	refused := o.now().Before(o.until)
	o.mu.Unlock()
	if refused {
		return
	}
	if err := o.reports.WriteReport(ctx, o.id, body); err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.failed(ctx, "the report of this replica could not be written", err)
	}
}
