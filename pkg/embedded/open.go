package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Open returns a store that keeps its contents in a directory, which it creates if needed. After a
// crash each bucket has the tokens that it surely has, and a log line gives the loss. Errors are
// those of the directory and its file, see package datafile. They wrap limiter.ErrInvalid where an
// operator must act.
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
	r := s.recovery
	if r.Behind >= behindLog {
		cfg.Logger.Warn("the clock is behind the data file: the downtime is not refilled", slog.Duration("by", r.Behind))
	}
	if r.Crashed {
		cfg.Logger.Warn("unclean shutdown: tokens in open blocks are forfeited",
			slog.Int("buckets", r.Buckets), slog.Int("blocks", r.Blocks), slog.Int64("tokens_at_most", r.Lost/limiter.Milli))
	}
	return s, nil
}

// behindLog is the least time by which a clock that is behind is worth a log line: clocks are
// corrected by less.
const behindLog = time.Minute

// Present returns datafile.ErrGone when the data file is no longer at its path. Decisions are still
// exact then, but all data is lost when the process ends. It returns nil without a file.
func (s *Store) Present() error {
	if s.disk == nil {
		return nil
	}
	return s.disk.file.Present()
}

// Recovery returns the result of opening the store.
func (s *Store) Recovery() Recovery { return s.recovery }

// load reads the file, and records that the store is running.
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
