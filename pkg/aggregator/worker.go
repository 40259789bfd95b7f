package aggregator

import (
	"context"
	"errors"
	"time"
)

// worker reads one shard of the stream, from the position of its lease to its end.
type worker struct {
	*Poller
	*holding

	shard    string
	batch    *Batch
	splits   OpenSplits
	lines    *Lines    // nil = there is no archive
	begun    time.Time // when the first record came that is not done
	position Sequence  // of the last record in the batch
	newest   time.Time // its write
	pending  int       // records in the batch, of any item
}

// work works until the shard ends or ctx is done. An error says that the lease is lost.
func (w *worker) work(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	kept := make(chan error, 1)
	go func() {
		err := w.keep(ctx)
		stop(err)
		kept <- err
	}()
	err := w.read(ctx)
	stop(nil)
	if lost := <-kept; !errors.Is(lost, context.Canceled) {
		return lost
	}
	if errors.Is(err, ErrConflict) {
		return err
	}
	w.leave(ctx)
	return nil
}

// read reads the shard until it ends or ctx is done. Its error is that of a flush.
func (w *worker) read(ctx context.Context) error {
	iterator, err := w.open(ctx, w.held().Position)
	for err == nil && ctx.Err() == nil {
		records, next, readErr := w.cfg.Source.Read(ctx, iterator)
		if readErr != nil {
			iterator, err = w.reopen(ctx, iterator, readErr)
			continue
		}
		w.health.succeed(w.shard)
		for i := range records {
			w.take(&records[i])
		}
		end := next == ""
		if end || w.full() || w.pending > 0 && time.Since(w.begun) >= w.cfg.FlushAfter {
			if err := w.flush(ctx, end); err != nil || end {
				return err
			}
		}
		iterator = next
		if len(records) == 0 {
			w.idle(ctx)
		}
	}
	if errors.Is(err, ErrDropped) {
		return w.drop(ctx)
	}
	return nil
}

// idle waits for records after a read that found none. Such a read proves no more than that: the next one
// may find records that were there.
func (w *worker) idle(ctx context.Context) {
	if w.pending == 0 {
		w.health.reach(w.shard, time.Now())
	}
	pause(ctx, w.cfg.Idle)
}

// drop ends the work on a shard that the stream has dropped: it writes the records that were read, and
// reports the gap behind them. Its error is that of the flush.
func (w *worker) drop(ctx context.Context) error {
	after := w.after()
	err := w.flush(ctx, true) // rule: a shard that is dropped is flushed
	if err == nil {
		w.lose(w.shard, after)
	}
	return err
}

// after returns the position up to which the shard was read.
func (w *worker) after() Sequence {
	if w.position != "" {
		return w.position
	}
	return w.held().Position
}

// fail reports a failed call for the shard, and waits before the next one.
func (w *worker) fail(ctx context.Context, what string, err error) {
	w.failed(ctx, w.shard, what, err)
}

// take adds a record to the batch.
func (w *worker) take(r *Record) {
	if w.pending == 0 {
		w.begun = time.Now()
		w.health.behind(w.shard, r.Time)
	}
	w.pending++
	w.batch.Add(r)
	w.splits.Add(r)
	if w.lines != nil {
		w.lines.Add(r)
	}
	w.position, w.newest = r.Sequence, r.Time
}

// open returns an iterator behind a position. Its error is that of ctx, or ErrDropped.
func (w *worker) open(ctx context.Context, after Sequence) (string, error) {
	for ctx.Err() == nil {
		iterator, err := w.cfg.Source.Open(ctx, w.shard, after)
		switch {
		case err == nil || errors.Is(err, ErrDropped):
			return iterator, err
		case errors.Is(err, ErrTrimmed) && after != "":
			w.lose(w.shard, after)
			after = ""
		case errors.Is(err, ErrPosition) && after != "":
			w.reset(after)
			after = ""
		default:
			w.fail(ctx, "a shard of the stream cannot be opened", err)
		}
	}
	return "", ctx.Err()
}

// reset reports that the position of a lease is none of its shard. The shard is read from its first record
// then: snapshots refuse the records that they have.
func (w *worker) reset(after Sequence) {
	w.counters.failures.Add(1)
	w.cfg.Logger.Error("the position of a lease is not one of its shard, which is read again from its first record", "shard", w.shard, "position", string(after))
}

// reopen returns an iterator to go on with after a read that failed. Its error is that of open.
func (w *worker) reopen(ctx context.Context, iterator string, err error) (string, error) {
	after := w.after()
	switch {
	case errors.Is(err, ErrExpired):
		return w.open(ctx, after)
	case errors.Is(err, ErrTrimmed):
		w.lose(w.shard, after)
		return w.open(ctx, "")
	}
	w.fail(ctx, "a shard of the stream cannot be read", err)
	if errors.Is(err, ErrGone) || errors.Is(err, ErrDropped) {
		return w.open(ctx, after)
	}
	return iterator, nil
}

// full reports whether enough records wait to be written.
func (w *worker) full() bool {
	return w.pending >= w.cfg.FlushRecords || w.lines != nil && w.lines.Full()
}

// archive puts the events that wait into the archive. Its error is that of ctx.
func (w *worker) archive(ctx context.Context) error {
	for w.lines != nil {
		done, err := w.lines.Flush(ctx, w.cfg.Archive)
		w.counters.archived.Add(int64(done.Events))
		w.bury(w.lines.Letters())
		if err == nil {
			break
		}
		if w.fail(ctx, "audit events cannot be archived", err); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// count writes the batch. Its error is that of ctx.
func (w *worker) count(ctx context.Context) error {
	for {
		done, err := w.batch.Flush(ctx, w.cfg.Snapshots)
		w.counters.snapshots.Add(int64(done.Written))
		w.counters.repeated.Add(int64(done.Repeated))
		w.counters.misdated.Add(int64(w.batch.Misdated()))
		w.bury(w.batch.Letters())
		if err == nil {
			return nil
		}
		if w.fail(ctx, "usage cannot be written", err); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// flush writes the batch, the archive and then the position. Its error is that of ctx, or ErrConflict where the lease
// is lost.
func (w *worker) flush(ctx context.Context, end bool) error {
	err := w.count(ctx) // rule: usage is written before the position
	if err == nil {
		w.finishSplits(ctx)
		err = w.archive(ctx)
	}
	if err == nil {
		err = w.save(ctx, end)
	}
	if err != nil {
		return err
	}
	w.counters.records.Add(int64(w.pending))
	if w.pending > 0 {
		w.health.reach(w.shard, w.newest)
	}
	w.pending = 0
	return nil
}

// save writes the position.
func (w *worker) save(ctx context.Context, end bool) error {
	for {
		err := w.write(ctx, func(l *Lease) {
			if w.position != "" {
				l.Position = w.position
			}
			l.Done = end
			if end {
				l.Owner = ""
			}
		})
		if err == nil || errors.Is(err, ErrConflict) {
			return err
		}
		if w.fail(ctx, "the position in the stream cannot be saved", err); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// finishSplits finishes the splits that no replica has finished. It holds nothing up: a replica that
// uses the bucket finishes them, too.
func (w *worker) finishSplits(ctx context.Context) {
	if w.cfg.Splits == nil {
		return
	}
	finished, err := w.splits.Finish(ctx, w.cfg.Splits)
	w.counters.splits.Add(int64(finished))
	if err != nil {
		w.counters.failures.Add(1)
		w.cfg.Logger.WarnContext(ctx, "splits of buckets cannot be finished; replicas that use them will", "error", err)
	}
}

// leave ends the work cleanly: it writes the records that were read, and gives the lease back. The time for
// it is bounded by the term of the lease.
func (w *worker) leave(ctx context.Context) {
	if w.held().Done {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), w.term/3)
	defer stop()
	if w.pending > 0 && w.flush(ctx, false) != nil {
		return // another process goes on when the lease has run out
	}
	if err := w.write(ctx, func(l *Lease) { l.Owner = "" }); err != nil {
		w.cfg.Logger.WarnContext(ctx, "a lease of the stream cannot be given back", "shard", w.shard, "error", err)
	}
}
