package embedded

import (
	"errors"
	"log/slog"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
)

const (
	// compactAbove is the size of a file, in bytes, up to which free space does not matter.
	compactAbove = 16 << 20
	// compactPause is the time between two compactions. Each delays changes for about a second for
	// every 75 MiB in use. Takes within blocks continue.
	compactPause = 10 * time.Minute
)

// compaction rewrites the file of a store when most of it is free. The sweeper owns it.
type compaction struct {
	file *datafile.File
	log  *slog.Logger
	last time.Time // when the last one began
}

// run compacts the file if enough of it is free. It stops when stop is closed.
func (c *compaction) run(stop <-chan struct{}, now time.Time) {
	before := c.file.Stats()
	if before.Bytes <= compactAbove || before.FreeBytes <= before.Bytes/2 || now.Sub(c.last) < compactPause {
		return
	}
	c.last = now
	begin := time.Now()
	if err := c.file.Compact(stop); err != nil {
		if !errors.Is(err, datafile.ErrClosed) {
			c.log.Warn("compaction failed: the data file is unchanged", slog.Any("error", err))
		}
		return
	}
	c.log.Info("the data file was compacted", slog.Int64("bytes_before", before.Bytes),
		slog.Int64("bytes", c.file.Stats().Bytes), slog.Duration("took", time.Since(begin)))
}
