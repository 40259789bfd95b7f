package datafile

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
)

// Tx is a transaction, for one goroutine and until its function returns.
type Tx struct {
	tx       *bbolt.Tx
	seal     *sealer
	state    state // with the changes so far
	writable bool
	failed   error // damage found by Get, which returns no error
}

// Update makes the changes of fn. When it returns nil they are on disk, and survive a power cut.
// Otherwise none of them was made, except with ErrUncertain. It must not be called inside a
// transaction.
//
// Errors: that of fn; ErrFull; ErrUncertain; ErrCorrupt when fn read a value that differs from the
// one written; ErrReadOnly; ErrClosed.
func (f *File) Update(fn func(*Tx) error) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	if err := f.usable(); err != nil {
		return err
	}
	if f.readOnly {
		return describe(f.path(), fmt.Errorf("%w: the file was opened read-only", ErrReadOnly))
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	h := f.current.Load()
	btx, err := begin(h.db, true)
	if err != nil {
		return f.lost(err, 0)
	}
	defer rollback(btx)
	tx := &Tx{tx: btx, seal: &f.seal, state: f.state, writable: true}
	if err := f.outcome(tx, fn(tx)); err != nil {
		return err
	}
	started, id := time.Now(), btx.ID()
	if err := tx.commit(); err != nil {
		return f.lost(err, id)
	}
	if f.mark != nil {
		if err := writeMark(f.mark, tx.state.commit); err != nil {
			f.log.Warn("the commit is on disk, but its marker cannot be written: damage to it may go undetected", "error", err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state, f.last = tx.state, time.Since(started)
	f.commits++
	return nil
}

// lost returns the error of a failed commit of a transaction. Without space, no page of the state before was
// changed, and bbolt drops the new pages. Any other failure, such as a failed fsync, leaves the
// state of the disk open: the kernel reports it once, and then treats the pages as written.
func (f *File) lost(err error, id int) error {
	if cause := spaceless(err); cause != nil && f.precedes(id) {
		return describe(f.path(), fmt.Errorf("%w: %w", ErrFull, cause))
	}
	if !errors.Is(err, ErrCorrupt) {
		err = fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	f.fail(err)
	return describe(f.path(), err)
}

// precedes reports whether the file has the state before a transaction.
func (f *File) precedes(id int) bool {
	_, tx, err := f.beginView()
	if err != nil {
		return false
	}
	defer rollback(tx)
	return tx.ID() == id-1
}

// View calls fn with a state between two transactions, which does not change during the call. A
// long call prevents the reuse of pages, so that the file grows.
//
// Errors: that of fn; ErrCorrupt as in Update; ErrUncertain; ErrClosed.
func (f *File) View(fn func(*Tx) error) error {
	_, btx, err := f.beginView()
	if err != nil {
		return err
	}
	defer rollback(btx)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	tx := &Tx{tx: btx, seal: &sealer{}}
	return f.outcome(tx, fn(tx))
}

// outcome joins the error of a function and the damage that it read.
func (f *File) outcome(tx *Tx, err error) error {
	if tx.failed == nil {
		return err
	}
	return errors.Join(err, describe(f.path(), tx.failed))
}

// beginView begins a read of the file that is current at its start.
func (f *File) beginView() (*handle, *bbolt.Tx, error) {
	for {
		if err := f.usable(); err != nil {
			return nil, nil, err
		}
		h := f.current.Load()
		btx, err := begin(h.db, false)
		if err == nil {
			return h, btx, nil
		}
		if h == f.current.Load() && f.usable() == nil {
			return nil, nil, describe(f.path(), err)
		}
	}
}

func begin(db *bbolt.DB, writable bool) (tx *bbolt.Tx, err error) {
	defer caught(&err)
	return db.Begin(writable)
}

// rollback ends a transaction that did not end with a commit.
func rollback(tx *bbolt.Tx) {
	var err error
	defer caught(&err)
	_ = tx.Rollback() // its only error is that the transaction has ended
}

// commit writes the state with the changes.
func (tx *Tx) commit() (err error) {
	defer caught(&err)
	tx.state.commit++
	if err := tx.tx.Bucket([]byte(reserved)).Put(stateKey(), tx.seal.seal(reserved, stateKey(), tx.state.encode())); err != nil {
		return err
	}
	return tx.tx.Commit()
}

// Get returns the value of a key, nil when there is none. It is valid until the
// transaction ends, and must not be changed. Of a damaged value it returns nil, and
// the transaction fails with ErrCorrupt.
func (tx *Tx) Get(t Table, key []byte) []byte {
	value, err := tx.get(t, key)
	if err != nil {
		tx.failed = err
		return nil
	}
	return value
}

// get is Get with an error. The record remains in the sealer.
func (tx *Tx) get(t Table, key []byte) (value []byte, err error) {
	defer caught(&err)
	b, err := tx.bucket(t)
	if err != nil {
		return nil, err
	}
	sealed := b.Get(key)
	if sealed == nil {
		return nil, nil
	}
	return tx.seal.open(t, key, sealed)
}

func (tx *Tx) bucket(t Table) (*bbolt.Bucket, error) {
	if indexOf(t) < 0 {
		return nil, fmt.Errorf("there is no table %q", t)
	}
	if b := tx.tx.Bucket([]byte(t)); b != nil {
		return b, nil
	}
	return nil, damaged("table %s is missing", t)
}

// Put sets the value of a key of 1 to 32,768 bytes; the value may be empty. Both may be reused
// afterwards.
func (tx *Tx) Put(t Table, key, value []byte) (err error) {
	defer caught(&err)
	d, err := tx.without(t, key)
	if err != nil {
		return err
	}
	sealed := tx.seal.seal(t, key, value)
	if err := tx.tx.Bucket([]byte(t)).Put(key, sealed); err != nil {
		return fmt.Errorf("table %s, key of %d bytes: %w", t, len(key), err)
	}
	d.add(tx.seal.fingerprint())
	tx.state.digests[indexOf(t)] = d
	return nil
}

// Delete removes a key, if it exists.
func (tx *Tx) Delete(t Table, key []byte) (err error) {
	defer caught(&err)
	d, err := tx.without(t, key)
	if err != nil {
		return err
	}
	if err := tx.tx.Bucket([]byte(t)).Delete(key); err != nil {
		return fmt.Errorf("table %s, key of %d bytes: %w", t, len(key), err)
	}
	tx.state.digests[indexOf(t)] = d
	return nil
}

// without returns the digest of a table without the record of key, if there is one.
func (tx *Tx) without(t Table, key []byte) (digest, error) {
	if !tx.writable {
		return digest{}, fmt.Errorf("table %s: a View %w", t, ErrReadOnly)
	}
	value, err := tx.get(t, key)
	if err != nil {
		return digest{}, err
	}
	d := tx.state.digests[indexOf(t)]
	if value != nil {
		d.remove(tx.seal.fingerprint())
	}
	return d, nil
}

// Each calls fn for the records of a table whose keys have the prefix, in the order of their bytes.
// When fn returns an error, Each returns it. Key and value are as from Get; fn must not change the
// table.
func (tx *Tx) Each(t Table, prefix []byte, fn func(key, value []byte) error) error {
	return tx.EachFrom(t, prefix, prefix, fn)
}

// EachFrom is Each for the keys that are not below from.
func (tx *Tx) EachFrom(t Table, prefix, from []byte, fn func(key, value []byte) error) error {
	b, err := tx.bucket(t)
	if err != nil {
		return err
	}
	if bytes.Compare(from, prefix) < 0 {
		from = prefix
	}
	c := b.Cursor()
	key, value, err := tx.step(t, func() ([]byte, []byte) { return c.Seek(from) })
	for ; err == nil && key != nil && bytes.HasPrefix(key, prefix); key, value, err = tx.step(t, c.Next) {
		if err := fn(key, value); err != nil {
			return err
		}
	}
	return err
}

// EachBack is Each for the keys that are below before, in the opposite order.
func (tx *Tx) EachBack(t Table, prefix, before []byte, fn func(key, value []byte) error) error {
	b, err := tx.bucket(t)
	if err != nil {
		return err
	}
	c := b.Cursor()
	key, value, err := tx.step(t, func() ([]byte, []byte) {
		if key, _ := c.Seek(before); key == nil {
			return c.Last()
		}
		return c.Prev()
	})
	for ; err == nil && key != nil && bytes.HasPrefix(key, prefix); key, value, err = tx.step(t, c.Prev) {
		if err := fn(key, value); err != nil {
			return err
		}
	}
	return err
}

// step moves a cursor.
func (tx *Tx) step(t Table, move func() ([]byte, []byte)) (key, value []byte, err error) {
	defer caught(&err)
	key, sealed := move()
	if key == nil {
		return nil, nil, nil
	}
	value, err = tx.seal.open(t, key, sealed)
	return key, value, err
}
