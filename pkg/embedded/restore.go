package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// receivedName is the directory, inside that of the store, of a backup that is being restored.
const receivedName = ".restoring"

// restorer restores backups into a running store.
type restorer struct {
	table       *table
	catalog     *catalog
	settlements *settlements
	disk        *disk      // nil without a file
	restoring   sync.Mutex // locked by Restore
}

// Restore replaces the contents of the store by those of a backup, while the store serves:
//
//   - Entities, limits, audit events and usage are those of the backup, in one transaction. The
//     generation rises, so that buckets get the limits as after any change. The usage of the
//     current hour is retained.
//   - Each bucket has the lesser of its own balance and the refilled one of the backup. So a
//     restore adds no tokens.
//   - Marks of settlements and names of namespaces are those of both. Secrets stay.
//
// The backup is read and checked as a whole before anything changes. After a later error entities,
// limits, audit events and usage are unchanged, and buckets may have less. During the transaction,
// changes and takes beyond blocks wait: some seconds for a million records.
//
// Errors: limiter.ErrInvalid without a file, and for a backup that is damaged, of another format,
// larger than MaxBuckets, or no backup. limiter.ErrUnavailable, also while another backup is being
// restored. limiter.ErrClosed.
func (r *restorer) Restore(ctx context.Context, from io.Reader) error {
	if r.disk == nil {
		return errNoFile()
	}
	if !r.restoring.TryLock() {
		return fmt.Errorf("%w: another backup is being restored", limiter.ErrUnavailable)
	}
	defer r.restoring.Unlock()
	if err := r.catalog.usable(ctx); err != nil {
		return err
	}
	dir := filepath.Join(r.disk.file.Dir(), receivedName)
	if err := os.RemoveAll(dir); err != nil { // left by a process that was killed
		return unavailable(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the next restore removes it too
	if err := datafile.Restore(dir, from); err != nil {
		return refused(err)
	}
	file, err := datafile.Open(dir, datafile.Options{ReadOnly: true})
	if err != nil {
		return refused(err)
	}
	err = file.View(func(tx *datafile.Tx) error { return r.replace(context.WithoutCancel(ctx), tx) })
	return errors.Join(err, file.Close())
}

// refused returns the error of a backup that cannot be received.
func refused(err error) error {
	if errors.Is(err, datafile.ErrCorrupt) || errors.Is(err, datafile.ErrVersion) {
		return fmt.Errorf("%w: %w", limiter.ErrInvalid, err)
	}
	return unavailable(err)
}

// backup is the contents of a backup, in memory. Buckets are refilled to now.
type backup struct {
	table       *table
	catalog     *catalog
	settlements *settlements
	found       Recovery
}

// readBackup reads a backup.
func (r *restorer) readBackup(tx *datafile.Tx, now int64) (*backup, error) {
	cfg := r.table.cfg
	b := &backup{table: newTable(cfg, false), catalog: newCatalog(cfg, nil), settlements: newSettlements(cfg, nil)}
	var err error
	b.found, err = b.table.load(tx, now)
	if err = errors.Join(err, b.catalog.load(tx), b.settlements.marks.load(tx)); err != nil {
		return nil, fmt.Errorf("%w: the backup: %w", limiter.ErrInvalid, err)
	}
	if n := b.table.Buckets(); n > r.table.cfg.MaxBuckets {
		return nil, fmt.Errorf("%w: the backup has %d buckets, and the store holds %d at most; raise max_buckets", limiter.ErrInvalid, n, r.table.cfg.MaxBuckets)
	}
	return b, nil
}

// replace restores in an order in which a crash adds no tokens: buckets are reduced before limits
// can rise.
func (r *restorer) replace(ctx context.Context, from *datafile.Tx) error {
	now := r.table.cfg.Now()
	b, err := r.readBackup(from, now.UnixMilli())
	if err != nil {
		return err
	}
	c := r.catalog
	c.changing.Lock()
	defer c.changing.Unlock()
	used, err := r.lower(ctx, b.table, now.UnixMilli())
	if err != nil {
		return err
	}
	e := edit{set: &c.recordSet, by: ctx, namespace: limiter.DefaultNamespace, generation: max(c.generation.Load(), b.catalog.generation.Load()) + 1}
	e.audit(limiter.ActionRestore, limiter.SystemLimitsRef(), fmt.Sprintf("%d entities and limits", len(b.catalog.records)))
	changes := append(r.unite(&b.settlements.marks), e.changes(now)...)
	r.disk.moving.Lock()
	defer r.disk.moving.Unlock()
	err = r.disk.file.Update(func(to *datafile.Tx) error {
		for _, t := range []datafile.Table{datafile.Records, datafile.Audit, datafile.Usage} {
			if err := clearOthers(to, from, t); err != nil {
				return err
			}
		}
		for _, t := range []datafile.Table{datafile.Records, datafile.Audit, datafile.Usage, datafile.Namespaces} {
			if err := from.Each(t, nil, func(key, value []byte) error { return to.Put(t, key, value) }); err != nil {
				return err
			}
		}
		for i := range changes {
			if err := changes[i].apply(to); err != nil {
				return err
			}
		}
		return addUsage(to, used)
	})
	if err != nil {
		return unavailable(err)
	}
	r.table.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "backup restored", slog.Int("entities_and_limits", len(b.catalog.records)),
		slog.Int("buckets", b.found.Buckets), slog.Uint64("generation", e.generation))
	return c.replaceAll(b.catalog.records, e.generation)
}

// clearOthers deletes the records of a table that another file does not have.
func clearOthers(to, from *datafile.Tx, t datafile.Table) error {
	var gone [][]byte
	err := to.Each(t, nil, func(key, _ []byte) error {
		if from.Get(t, key) == nil {
			gone = append(gone, bytes.Clone(key))
		}
		return nil
	})
	for _, key := range gone {
		err = errors.Join(err, to.Delete(t, key))
	}
	return err
}

// unite adds marks to those of the store, and returns the changes that write them.
func (r *restorer) unite(with *marks) []change {
	var added []change
	for i := range with.shards {
		for name, m := range with.shards[i].marks {
			sh := r.settlements.marks.markShard(name[1 : 1+name[0]])
			sh.mu.Lock()
			if _, found := sh.marks[name]; !found && sh.marks != nil {
				sh.marks[name] = m
				r.settlements.marks.count.Add(1)
				added = append(added, m.put(name))
			}
			sh.mu.Unlock()
		}
	}
	return added
}

// lower reduces the buckets of the store to those of a backup, which it consumes. It returns when
// the file has them. used is the usage in the backup's buckets that the store's do not count.
func (r *restorer) lower(ctx context.Context, backup *table, now int64) (used []usageRow, err error) {
	var last *batch
	for i := range backup.shards {
		for _, b := range backup.shards[i].buckets {
			for b != nil {
				next := b.next
				hash, sh := r.table.hashOf(b)
				sh.mu.Lock()
				if sh.buckets == nil {
					sh.mu.Unlock()
					return nil, limiter.ErrClosed
				}
				held := sh.sameAs(hash, b)
				used = surplus(used, b, held)
				if n := r.lowerOne(sh, hash, held, b, now); n != nil {
					last = n
				}
				sh.mu.Unlock()
				b = next
			}
		}
	}
	if last != nil { // the batches before it are written before it
		err = last.wait(ctx)
	}
	return used, err
}

// lowerOne reduces a bucket to that of a backup. If the store has no such bucket, it is full or an
// overflow bucket stands for it; then the backup's takes its place. It returns the batch that
// writes the bucket, nil for none. The shard must be locked.
func (r *restorer) lowerOne(sh *shard, hash uint64, b, to *bucket, now int64) *batch {
	switch {
	case b != nil && !b.lower(to, false, now), b == nil && to.full(now):
		return nil
	case b == nil:
		b = to
		b.block, b.next = newBlock(b.limits, now), sh.buckets[hash]
		if !b.shared {
			r.table.inheritAll(b, now)
		}
		sh.buckets[hash] = b
		r.table.count(b, 1)
	}
	return r.disk.want(sh, hash, b)
}
