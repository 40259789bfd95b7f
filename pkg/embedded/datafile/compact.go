package datafile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"go.etcd.io/bbolt"
)

const (
	// batch is the number of bytes of records in one transaction of a rewrite.
	batch = 4 << 20
	// fillShare is the filled part of rewritten pages, so that the next changes do not split each
	// page.
	fillShare = 0.9
)

// Compact rewrites the file without its free space, and replaces the old one. Changes wait during
// the rewrite, reads do not. It returns when the reads that began before it have ended. For a
// moment the disk has both files. It is worth it when more than half of a file above some MiB is
// free. After an error the file is unchanged.
//
// Errors: those of Update; ErrCorrupt when a record differs from the one written. ErrGone when
// another file is at the path, which is not touched. ErrClosed when stop is closed before the copy
// is made; a nil channel never stops it.
func (f *File) Compact(stop <-chan struct{}) error {
	old, err := f.compact(stop)
	if err != nil {
		return err
	}
	if err := old.db.Close(); err != nil {
		return fmt.Errorf("%s: closing the old file: %w", f.path(), err)
	}
	return nil
}

// compact returns the handle that it replaced.
func (f *File) compact(stop <-chan struct{}) (*handle, error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	if f.readOnly {
		return nil, describe(f.path(), fmt.Errorf("%w: the file was opened read-only", ErrReadOnly))
	}
	_, tx, err := f.beginView()
	if err != nil {
		return nil, err
	}
	defer rollback(tx)
	if err := f.present(); err != nil { // another file is at the path
		return nil, err
	}
	file, err := lockNew(f.dir)
	if err != nil {
		return nil, err
	}
	h, s, err := build(stop, file, tx, f.state.commit)
	if err == nil && s.digests != f.state.digests {
		err = damaged("its records are not those of the last commit")
	}
	if err == nil { // the path may have changed during the copy
		if err = f.present(); err != nil {
			err = errors.Join(err, h.db.Close())
		}
	}
	if err != nil {
		_ = unlock(file)
		return nil, errors.Join(describe(f.path(), err), removeNew(f.dir))
	}
	if err := install(f.dir); err != nil {
		// Either file may be in place, with the same records.
		err = fmt.Errorf("%w: %w", ErrUncertain, err)
		f.fail(err)
		_ = h.db.Close()
		return nil, describe(f.path(), err)
	}
	old := f.current.Swap(h)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = s
	return old, nil
}

// build turns an empty file into a whole one, and returns it when it is on disk. It has the records
// of from, if there are any, and the commit after the given one.
func build(stop <-chan struct{}, file *os.File, from *bbolt.Tx, commit uint64) (_ *handle, _ state, err error) {
	defer caught(&err)
	db, err := openDB(file, false)
	if err != nil {
		return nil, state{}, fullOr(err)
	}
	db.NoSync, db.NoGrowSync = true, true // no process reads it before it is complete
	w := &rebuild{db: db, from: from, state: state{commit: commit}}
	if err := w.run(stop); err != nil {
		return nil, state{}, errors.Join(fullOr(err), db.Close())
	}
	db.NoSync, db.NoGrowSync = false, false
	if err := file.Sync(); err != nil {
		return nil, state{}, errors.Join(fullOr(err), db.Close())
	}
	return &handle{db: db, file: file}, w.state, nil
}

// rebuild copies records into a new file, in steps that need little memory.
type rebuild struct {
	db    *bbolt.DB
	from  *bbolt.Tx
	tx    *bbolt.Tx
	size  int
	state state
	sealer
}

func (w *rebuild) run(stop <-chan struct{}) (err error) {
	w.tx, err = w.db.Begin(true)
	if err != nil {
		return err
	}
	defer func() { rollback(w.tx) }()
	b, err := w.tx.CreateBucket([]byte(reserved))
	if err == nil {
		err = b.Put(formatKey(), w.seal(reserved, formatKey(), formatBytes()))
	}
	if err != nil {
		return err
	}
	for i, t := range tables() {
		if _, err := w.tx.CreateBucket([]byte(t)); err != nil {
			return err
		}
		if w.from == nil {
			continue
		}
		if err := w.table(stop, t, &w.state.digests[i]); err != nil {
			return err
		}
	}
	last := &Tx{tx: w.tx, seal: &w.sealer, state: w.state}
	err = last.commit()
	w.state = last.state
	return err
}

func (w *rebuild) table(stop <-chan struct{}, t Table, d *digest) error {
	from := w.from.Bucket([]byte(t))
	if from == nil {
		return damaged("table %s is missing", t)
	}
	to := w.tx.Bucket([]byte(t))
	c := from.Cursor()
	for key, sealed := c.First(); key != nil; key, sealed = c.Next() {
		if _, err := w.open(t, key, sealed); err != nil {
			return err
		}
		d.add(w.fingerprint())
		to.FillPercent = fillShare
		if err := to.Put(key, sealed); err != nil {
			return err
		}
		w.size += len(key) + len(sealed)
		if w.size < batch {
			continue
		}
		select {
		case <-stop:
			return fmt.Errorf("the copy: %w", ErrClosed)
		default:
		}
		if err := w.nextTx(); err != nil {
			return err
		}
		to = w.tx.Bucket([]byte(t))
	}
	return nil
}

// nextTx commits the transaction and begins another.
func (w *rebuild) nextTx() (err error) {
	w.size = 0
	if err := w.tx.Commit(); err != nil {
		return err
	}
	w.tx, err = w.db.Begin(true)
	return err
}

// fullOr converts an error about space to ErrFull.
func fullOr(err error) error {
	if cause := spaceless(err); cause != nil {
		return fmt.Errorf("%w: %w", ErrFull, cause)
	}
	return err
}

// lockNew creates the file under construction, empty and locked.
func lockNew(dir string) (*os.File, error) {
	file, err := lock(dir, newName, os.O_RDWR|os.O_CREATE, syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	if err := file.Truncate(0); err != nil {
		_ = unlock(file)
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	return file, nil
}

// install renames the file under construction to its place.
func install(dir string) error {
	if err := os.Rename(filepath.Join(dir, newName), filepath.Join(dir, fileName)); err != nil {
		return err
	}
	return syncDir(dir)
}

// installOther is install of a file that does not continue the commits of the one in its place.
func installOther(dir string) error {
	if err := clearMark(dir); err != nil {
		return err
	}
	return install(dir)
}

// removeNew removes a file under construction, unless another process has it.
func removeNew(dir string) error {
	file, err := lock(dir, newName, os.O_RDWR, syscall.LOCK_EX)
	var inUse *InUseError
	if errors.Is(err, os.ErrNotExist) || errors.As(err, &inUse) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(os.Remove(file.Name()), unlock(file))
}
