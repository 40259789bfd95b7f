package aggregator

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// reportTime bounds the write of a report.
const reportTime = 2 * time.Second

// progress returns the report of the poller.
func (p *Poller) progress(stopped bool) *Progress {
	s := p.Stats()
	out := &Progress{ID: p.cfg.ReportID, Stopped: stopped, Shards: s.Shards, Problem: p.problem()}
	if s.Oldest.IsZero() {
		out.Shards = 0 // it takes its first one just now
	} else {
		out.Behind = max(time.Since(s.Oldest), 0).Truncate(time.Millisecond)
	}
	return out
}

// problem says why the poller does not go on; "" = it does.
func (p *Poller) problem() string {
	if p.counters.missing.Load() {
		return "the table has no stream with both images"
	}
	err := cmp.Or(p.Alive(), p.health.stuck())
	if err == nil {
		return ""
	}
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), MaxProblem)], "")
}

// reporting reports the progress until the function that it returns is called, which reports the end.
func (p *Poller) reporting(ctx context.Context) (end func()) {
	if p.cfg.Reports == nil {
		return func() {}
	}
	ctx, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		failing := false
		for {
			failing = p.report(ctx, false, failing)
			select {
			case <-ctx.Done():
				return
			case <-time.After(ReportEvery):
			}
		}
	})
	return func() {
		stop()
		work.Wait()
		p.report(context.WithoutCancel(ctx), true, false)
	}
}

// report writes a report once, and returns whether that failed. The first failure of a row has a line in the log. No
// record waits for it.
func (p *Poller) report(ctx context.Context, stopped, failing bool) bool {
	within, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	err := p.cfg.Reports.Report(within, p.progress(stopped))
	if err != nil && ctx.Err() == nil && !failing {
		p.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "the report of this aggregator could not be written: status and console do not show it", slog.Any("error", err))
	}
	return err != nil
}
