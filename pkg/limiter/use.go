package limiter

import "context"

// SetStatic puts s in force: Use of a NewSnapshot.
func (l *Limiter) SetStatic(ctx context.Context, s Static) error {
	snapshot, err := NewSnapshot(s)
	if err != nil {
		return err
	}
	return l.Use(ctx, snapshot)
}

// Use puts a snapshot in force, in place of the earlier one, for every later request without its
// own; balances stay. If it fails, with the store's error, the snapshot is in force all the same.
// Then buckets with other limits may keep those until the next change.
func (l *Limiter) Use(ctx context.Context, snapshot *Snapshot) error {
	l.use.Lock()
	snapshot.retired.Store(false)
	if old := l.snapshot.Swap(snapshot); old != snapshot {
		old.retired.Store(true) // before the generation rises: see generationOf
	}
	l.uses.Add(1)
	l.use.Unlock()
	return l.store.RaiseGeneration(ctx)
}

// snapshotOf returns the snapshot that a request is decided by.
func (l *Limiter) snapshotOf(req *Request) *Snapshot {
	if req.Snapshot != nil {
		return req.Snapshot
	}
	return l.snapshot.Load()
}
