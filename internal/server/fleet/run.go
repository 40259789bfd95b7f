package fleet

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/api"
)

const (
	// Every is the time from one report of a replica to the next.
	Every = 15 * time.Second
	// writeTime bounds the write of a report, and lastTime that of the last one.
	writeTime = 2 * time.Second
	lastTime  = time.Second
)

// Run counts decisions in steps, and writes reports for the other replicas, until ctx is done. Then it writes the
// last one, within a second. It is called once.
func (f *Fleet) Run(ctx context.Context) error {
	var work sync.WaitGroup
	work.Go(func() { f.count(ctx) })
	if f.others.reports != nil {
		work.Go(func() { f.tell(ctx) })
	}
	work.Wait()
	return nil
}

// count ends steps when they are over.
func (f *Fleet) count(ctx context.Context) {
	for {
		now := f.cfg.Now()
		step := time.NewTimer(stepTime(stepOf(now) + 1).Sub(now))
		select {
		case <-ctx.Done():
			step.Stop()
			return
		case <-step.C:
			f.decided.turn(f.cfg.Now())
		}
	}
}

// tell writes reports.
func (f *Fleet) tell(ctx context.Context) {
	ticker := time.NewTicker(Every)
	defer ticker.Stop()
	for ctx.Err() == nil {
		f.write(ctx, writeTime, false)
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	f.write(context.WithoutCancel(ctx), lastTime, true)
}

// write writes a report once. A failure costs nothing but the report.
func (f *Fleet) write(ctx context.Context, within time.Duration, stopped bool) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	now := f.cfg.Now()
	r := f.self(now, reportEvents)
	r.stopped = stopped
	if !stopped {
		r.tops = make(map[string][]controlapi.TopRow, len(f.cfg.Tops))
		for _, by := range []string{api.TopDenied, api.TopBusiest, api.TopShadow} {
			if counter := f.cfg.Tops[by]; counter != nil {
				r.tops[by] = counter.Top(now, reportRows, controlapi.TopFilter{})
			}
		}
	}
	body, err := encode(&r)
	if err != nil {
		f.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "the report of this replica could not be made", slog.Any("error", err))
		return
	}
	f.others.write(ctx, body)
}
