package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Keys of datafile.Meta.
const (
	metaRunning    = "running"    // there since the store was opened, until it is closed in order
	metaGeneration = "generation" // of the catalog
	secretPrefix   = "secret/"
)

// Recovery is what opening a store found of the life before.
type Recovery struct {
	Buckets int   // that the file had
	Crashed bool  // the life before did not end in order
	Blocks  int   // of limits, that were being handed out then
	Lost    int64 // millitokens in them: at most so many were not taken, and are lost
}

// Open returns a store that keeps everything in a directory, which it makes when there
// is none. After a crash buckets are brought to what they surely have, and the
// logger is told what was lost. Errors are those of the directory and its file, see
// package datafile, and wrap limiter.ErrInvalid where only a person can help.
func Open(dir string, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	file, err := datafile.Open(dir, datafile.Options{Logger: cfg.Logger, New: cfg.NewFile})
	if err != nil {
		return nil, err
	}
	s := assemble(cfg, file)
	if err := s.load(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	go s.disk.run()
	s.start()
	if r := s.recovery; r.Crashed {
		cfg.Logger.Warn("the process before did not end in order: what its blocks held is lost",
			slog.Int("buckets", r.Buckets), slog.Int("blocks", r.Blocks), slog.Int64("tokens_at_most", r.Lost/limiter.Milli))
	}
	return s, nil
}

// Present returns datafile.ErrGone when the data file is no longer where it was opened:
// decisions go on and are exact, and all that the store knows is lost at its end. nil
// without a file.
func (s *Store) Present() error {
	if s.disk == nil {
		return nil
	}
	return s.disk.file.Present()
}

// Recovery returns what opening the store found.
func (s *Store) Recovery() Recovery { return s.recovery }

// load reads the file, and notes in it that a life has begun.
func (s *Store) load() error {
	file := s.disk.file
	now := s.cfg.Now().UnixMilli()
	err := file.View(func(tx *datafile.Tx) error {
		found, err := s.table.load(tx, now)
		s.recovery = found
		s.recovery.Crashed = tx.Get(datafile.Meta, []byte(metaRunning)) != nil
		return errors.Join(err, s.catalog.load(tx), s.marks.load(tx), s.secrets.load(tx))
	})
	if err == nil {
		err = file.Update(func(tx *datafile.Tx) error { return tx.Put(datafile.Meta, []byte(metaRunning), []byte{1}) })
	}
	if err != nil {
		return fmt.Errorf("opening the embedded store: %w", err)
	}
	return nil
}

// load reads the buckets, as they may be now.
func (t *table) load(tx *datafile.Tx, now int64) (found Recovery, err error) {
	shared := make(map[string]*limiter.Limits)
	err = tx.Each(datafile.Buckets, nil, func(key, value []byte) error {
		r, err := parseBucket(key, value, shared)
		if err != nil {
			return err
		}
		found.Buckets++
		for _, size := range r.sizes {
			if size > 0 {
				found.Blocks++
			}
		}
		found.Lost = limiter.SaturatingSum(found.Lost, r.recover(now))
		hash, sh := t.hashOf(r.bucket)
		r.next = sh.buckets[hash]
		sh.buckets[hash] = r.bucket
		t.count(r.bucket, 1)
		return nil
	})
	return found, err
}

// finishBatch is how many buckets go into one transaction at the end.
const finishBatch = 10_000

// finish ends the writer, writes the exact state of every bucket, notes that the life
// ended in order, and closes the file.
func (d *disk) finish() error {
	d.close()
	now := d.cfg.Now().UnixMilli()
	var w writing
	var err error
	for _, buckets := range d.last {
		for _, b := range buckets {
			for ; b != nil && err == nil; b = b.next {
				w.finish(b, now)
				if len(w.changes) >= finishBatch {
					err = w.save(d.file)
					w = writing{}
				}
			}
		}
	}
	if err == nil {
		w.changes = append(w.changes, change{table: datafile.Meta, key: []byte(metaRunning)})
		err = w.save(d.file)
	}
	if err != nil {
		err = fmt.Errorf("%w: writing the last state: %w", limiter.ErrUnavailable, err)
	}
	return errors.Join(err, d.file.Close())
}

// finish adds what the file is to have of a bucket when all has ended, if it has not: its
// exact state, or nothing when it is full.
func (w *writing) finish(b *bucket, now int64) {
	if b.block == nil {
		b.block = storedBlock(b.limits, now)
	}
	k, full := b.block, b.full(now)
	if k.clean && !full || !k.stored && !k.unsaved() {
		return
	}
	c := change{table: datafile.Buckets}
	var head []byte
	if c.key, head = identified(b.identity()); full {
		b.turn(k.hour)
	} else {
		c.value = b.record(head, true)
	}
	w.changes = append(w.changes, c)
	w.used = b.rows(w.used)
}

// failed counts that a transaction failed, and says so once a second.
func (d *disk) failed(err error) {
	d.commitErrors.Add(1)
	now := d.cfg.Now().Unix()
	if last := d.failedAt.Swap(now); last == now {
		return
	}
	d.cfg.Logger.LogAttrs(context.Background(), slog.LevelError, "the data file cannot be written: what it does not cover is not given", slog.Any("error", err))
}
