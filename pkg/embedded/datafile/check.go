package datafile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// openChecked opens a locked file, and checks all of it. After an error the file is unlocked. An
// empty file is damage: bbolt alone would fill it.
func openChecked(file *os.File, readOnly bool) (*handle, state, error) {
	info, err := file.Stat()
	if err == nil && info.Size() < 2*pageSize {
		err = damaged("it has %d bytes, fewer than any data file", info.Size())
	}
	var db *bbolt.DB
	if err == nil {
		db, err = openDB(file, readOnly)
	}
	if err != nil {
		_ = unlock(file)
		return nil, state{}, err
	}
	h := &handle{db: db, file: file}
	s, err := h.check(info.Size())
	if err != nil {
		_ = h.close()
		return nil, state{}, err
	}
	return h, s, nil
}

// checker reads a whole file. bbolt trusts its pages, so the steps have an order: each makes the
// next one safe. A key of a wild length faults in this goroutine, which caught converts to an error.
// Tx.Check has a goroutine of its own, where a fault would end the process. So it is the last.
type checker struct {
	tx   *bbolt.Tx
	size int64 // of the file
	sealer
}

// check checks that each page has exactly one use or is free, the trees are in order, each value
// has its checksum, and each table its digest.
func (h *handle) check(size int64) (s state, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer caught(&err)
	tx, err := h.db.Begin(false)
	if err != nil {
		return state{}, err
	}
	defer rollback(tx)
	if tx.Size() > size {
		return state{}, damaged("it was cut off: %d of %d pages are there", size/pageSize, tx.Size()/pageSize)
	}
	c := &checker{tx: tx, size: size}
	if err := c.pages(h.db.Stats().FreePageN); err != nil {
		return state{}, err
	}
	p := &pointers{r: h.file, seen: make([]bool, tx.Size()/pageSize)}
	if err := p.follow(uint64(tx.Cursor().Bucket().Root())); err != nil {
		return state{}, err
	}
	s, err = c.tables()
	if err != nil {
		return state{}, err
	}
	for found := range tx.Check(bbolt.WithKVStringer(noKeys{})) {
		if err == nil {
			err = damaged("%w", found)
		}
	}
	return s, err
}

// noKeys omits keys from messages: that of a damaged page may be gigabytes long.
type noKeys struct{}

func (noKeys) KeyToString([]byte) string   { return "" }
func (noKeys) ValueToString([]byte) string { return "" }

// pages checks that the pages in use and the free ones, of which the list has so many, fill the
// file.
func (c *checker) pages(free int) error {
	last := int(c.tx.Size()/pageSize) - 1
	for id := 2; id <= last; id++ { // after the meta pages, of which one may be damaged
		p, err := c.tx.Page(id)
		if err != nil {
			return err
		}
		switch p.Type {
		case "free":
			free--
			continue
		case "branch", "leaf", "freelist":
		default:
			return damaged("page %d: it has no use", id)
		}
		if p.OverflowCount > last-id {
			return damaged("page %d: beyond the last one, %d", id, last)
		}
		id += p.OverflowCount
	}
	if free != 0 {
		return damaged("the list of free pages is wrong by %d pages", free)
	}
	return nil
}

// tables compares all tables with the state.
func (c *checker) tables() (state, error) {
	var names int
	err := c.walk(c.tx, func(key, value []byte) error {
		if value != nil {
			return damaged("%q is not a table", key)
		}
		names++
		return nil
	})
	if err != nil {
		return state{}, err
	}
	s, err := c.state()
	if err != nil {
		return state{}, err
	}
	for i, t := range tables() {
		var found digest
		err := c.table(t, func(_, _ []byte) { found.add(c.fingerprint()) })
		if err != nil {
			return state{}, err
		}
		if want := s.digests[i]; found.count != want.count {
			return state{}, damaged("table %s: %d of %d records are there", t, found.count, want.count)
		} else if found != want {
			return state{}, damaged("table %s: its records are not those of the last commit", t)
		}
	}
	if names != tableCount+1 {
		return state{}, damaged("it has %d tables instead of %d", names, tableCount+1)
	}
	return s, nil
}

// state reads the bucket of this package, the format first: all else may have another meaning
// in another format.
func (c *checker) state() (state, error) {
	values := make(map[string][]byte, 2)
	err := c.table(reserved, func(key, value []byte) { values[string(key)] = value })
	if err != nil {
		return state{}, err
	}
	format := values[string(formatKey())]
	if len(format) != 4 {
		return state{}, damaged("it does not say its format: not a data file of this program")
	}
	if v := binary.LittleEndian.Uint32(format); v != formatVersion {
		return state{}, fmt.Errorf("%w, %d; this program reads %d: run the program that wrote it, or restore a backup of format %d",
			ErrVersion, v, formatVersion, formatVersion)
	}
	return decodeState(values[string(stateKey())])
}

// table calls fn for each record of a table, with the record in the sealer.
func (c *checker) table(t Table, fn func(key, value []byte)) error {
	b := c.tx.Bucket([]byte(t))
	if b == nil {
		return damaged("table %s is missing", t)
	}
	return c.walk(b, func(key, sealed []byte) error {
		value, err := c.open(t, key, sealed)
		if err == nil {
			fn(key, value)
		}
		return err
	})
}

// walk calls fn for each element of a tree, whose keys must rise. Each key is also searched, which touches all keys of branches.
func (c *checker) walk(tree interface{ Cursor() *bbolt.Cursor }, fn func(key, value []byte) error) error {
	var last []byte
	next, search := tree.Cursor(), tree.Cursor()
	for key, value := next.First(); key != nil; key, value = next.Next() {
		if len(key) == 0 || len(key) > bbolt.MaxKeySize || int64(len(value)) > c.size {
			return damaged("a key of %d bytes with a value of %d", len(key), len(value))
		}
		if last != nil && bytes.Compare(last, key) >= 0 {
			return damaged("key %q is out of order", key)
		}
		if found, _ := search.Seek(key); !bytes.Equal(found, key) {
			return damaged("key %q cannot be found", key)
		}
		if err := fn(key, value); err != nil {
			return err
		}
		last = key
	}
	return nil
}

// notOpened returns ErrCorrupt for the errors with which bbolt refuses a file.
func notOpened(err error) error {
	for _, refusal := range []error{berrors.ErrInvalid, berrors.ErrVersionMismatch, berrors.ErrChecksum} {
		if errors.Is(err, refusal) {
			return damaged("it has no meta page: not a data file, or overwritten")
		}
	}
	return err
}
