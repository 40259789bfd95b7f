package datafile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// checker reads a file with bounds on every step, before bbolt maps it: bbolt trusts the pages, and
// a damaged page would crash the process.
type checker struct {
	r    io.ReaderAt
	meta meta
	seen []bool // pages with a use
	sealer
}

// check reads the whole file. The trees are in order, each page has exactly one use or is free,
// each value has its checksum, and each table its digest.
func check(r io.ReaderAt, size int64) (head, state, error) {
	if size < 2*pageSize {
		return head{}, state{}, damaged("it has %d bytes, fewer than any data file", size)
	}
	h, err := readHead(r)
	if err != nil {
		return head{}, state{}, err
	}
	if pages := uint64(size / pageSize); h.pages > pages {
		return head{}, state{}, damaged("it was cut off: %d of %d pages are there", pages, h.pages)
	}
	c := &checker{r: r, meta: h.meta, seen: make([]bool, h.pages)}
	c.seen[0], c.seen[1] = true, true
	s, err := c.tables()
	if err != nil {
		return head{}, state{}, err
	}
	if s.commit < h.newest {
		return head{}, state{}, damaged("it holds commit %d, and commit %d was made: a page went back", s.commit, h.newest)
	}
	return h, s, c.freelist()
}

// tables walks all trees, and compares them with the state.
func (c *checker) tables() (state, error) {
	roots := make(map[Table][]byte, tableCount+1)
	err := c.tree(c.meta.root, nil, nil, 0, func(key, value []byte, flags uint32) error {
		if flags != bucketFlag || len(value) < bucketHeader {
			return damaged("%q is not a table", key)
		}
		roots[Table(key)] = bytes.Clone(value)
		return nil
	})
	if err != nil {
		return state{}, err
	}
	s, err := c.state(roots)
	if err != nil {
		return state{}, err
	}
	for i, t := range tables() {
		found, err := c.digest(t, roots[t])
		if err != nil {
			return state{}, err
		}
		if want := s.digests[i]; found.count != want.count {
			return state{}, damaged("table %s: %d of %d records are there", t, found.count, want.count)
		} else if found != want {
			return state{}, damaged("table %s: its records are not those of the last commit", t)
		}
	}
	if len(roots) != tableCount+1 {
		return state{}, damaged("it has %d tables instead of %d", len(roots), tableCount+1)
	}
	return s, nil
}

// state reads the bucket of this package, the format first: all else may have another meaning
// in another format.
func (c *checker) state(roots map[Table][]byte) (state, error) {
	values := make(map[string][]byte, 2)
	err := c.bucket(reserved, roots[reserved], func(key, value []byte) error {
		values[string(key)] = bytes.Clone(value)
		return nil
	})
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

// digest sums up the records of a table in the file.
func (c *checker) digest(t Table, root []byte) (digest, error) {
	var d digest
	err := c.bucket(t, root, func(_, _ []byte) error {
		d.add(c.fingerprint())
		return nil
	})
	return d, err
}

// bucket calls fn for each record of a table, with the record in the sealer.
func (c *checker) bucket(t Table, root []byte, fn func(key, value []byte) error) error {
	if root == nil {
		return damaged("table %s is missing", t)
	}
	each := func(key, sealed []byte, flags uint32) error {
		if flags != 0 {
			return damaged("table %s, key %q: not a value", t, key)
		}
		value, err := c.open(t, key, sealed)
		if err != nil {
			return err
		}
		return fn(key, value)
	}
	if id := binary.NativeEndian.Uint64(root); id != 0 {
		return c.tree(id, nil, nil, 0, each)
	}
	// A small bucket is a page inside its value.
	p, err := parsePage(root[bucketHeader:])
	if err != nil {
		return damaged("table %s: %w", t, err)
	}
	if p.id != 0 || p.kind != leafPage {
		return damaged("table %s: not a table", t)
	}
	return c.leaf(p, nil, nil, each)
}

// tree walks the pages below id, whose keys are at least low and below high.
func (c *checker) tree(id uint64, low, high []byte, depth int, fn func(key, value []byte, flags uint32) error) error {
	if depth > maxDepth {
		return damaged("page %d: the tree does not end", id)
	}
	p, err := c.page(id)
	if err != nil {
		return err
	}
	switch p.kind {
	case leafPage:
		return c.leaf(p, low, high, fn)
	case branchPage:
		return c.branch(p, low, high, depth, fn)
	}
	return damaged("page %d: neither a branch nor a leaf", id)
}

func (c *checker) leaf(p page, low, high []byte, fn func(key, value []byte, flags uint32) error) error {
	for i := range p.count {
		flags, key, value, err := p.leafElement(i)
		if err != nil {
			return err
		}
		if !inOrder(low, key, high, i == 0) {
			return damaged("page %d: key %d is out of order", p.id, i)
		}
		if err := fn(key, value, flags); err != nil {
			return err
		}
		low = key
	}
	return nil
}

func (c *checker) branch(p page, low, high []byte, depth int, fn func(key, value []byte, flags uint32) error) error {
	if p.count == 0 {
		return damaged("page %d: a branch without leaves", p.id)
	}
	for i := range p.count {
		key, child, err := p.branchElement(i)
		if err != nil {
			return err
		}
		if !inOrder(low, key, high, i == 0) {
			return damaged("page %d: key %d is out of order", p.id, i)
		}
		next := high
		if i+1 < p.count {
			next, _, err = p.branchElement(i + 1)
			if err != nil {
				return err
			}
		}
		if err := c.tree(child, key, next, depth+1, fn); err != nil {
			return err
		}
		low = key
	}
	return nil
}

// inOrder reports whether key is after low (the first of a page may equal it) and
// before high; nil is no bound.
func inOrder(low, key, high []byte, first bool) bool {
	if low != nil {
		if d := bytes.Compare(low, key); d > 0 || d == 0 && !first {
			return false
		}
	}
	return len(key) > 0 && (high == nil || bytes.Compare(key, high) < 0)
}

// freelist reads the list of free pages, and checks that every page is in use or free.
func (c *checker) freelist() error {
	p, err := c.page(c.meta.freelist)
	if err != nil {
		return err
	}
	ids, ok := p.freeIDs()
	if !ok {
		return damaged("page %d: not a list of free pages", c.meta.freelist)
	}
	for ; len(ids) > 0; ids = ids[8:] {
		if err := c.take(binary.NativeEndian.Uint64(ids), 1); err != nil {
			return err
		}
	}
	for id, seen := range c.seen {
		if !seen {
			return damaged("page %d: neither in use nor free", id)
		}
	}
	return nil
}

// take records that n pages from id on have a use.
func (c *checker) take(id, n uint64) error {
	if id >= c.meta.pages || n > c.meta.pages-id {
		return damaged("page %d: beyond the last one, %d", id, c.meta.pages-1)
	}
	for i := id; i < id+n; i++ {
		if c.seen[i] {
			return damaged("page %d: in use twice", i)
		}
		c.seen[i] = true
	}
	return nil
}

// page reads a page and its overflow pages.
func (c *checker) page(id uint64) (page, error) {
	if id >= c.meta.pages {
		return page{}, damaged("page %d: beyond the last one, %d", id, c.meta.pages-1)
	}
	b := make([]byte, pageSize)
	if _, err := c.r.ReadAt(b, int64(id)*pageSize); err != nil { //nolint:gosec // below the file's size
		return page{}, damaged("page %d cannot be read: %w", id, err)
	}
	more := uint64(binary.NativeEndian.Uint32(b[12:]))
	if err := c.take(id, more+1); err != nil {
		return page{}, err
	}
	if more > 0 {
		b = make([]byte, (more+1)*pageSize)
		if _, err := c.r.ReadAt(b, int64(id)*pageSize); err != nil { //nolint:gosec // below the file's size
			return page{}, damaged("page %d cannot be read: %w", id, err)
		}
	}
	p, err := parsePage(b)
	if err == nil && p.id != id {
		err = damaged("page %d: it says it is page %d", id, p.id)
	}
	return p, err
}
