package datafile

import (
	"encoding/binary"
	"io"
)

// The parts of bbolt's pages that pointers reads: kinds, and places within a page.
const (
	branchPage = 0x01
	leafPage   = 0x02
	bucketFlag = 0x01 // of an element of the tree of tables

	pageHeader  = 16
	elementSize = 16
)

// pointer is a page to visit.
type pointer struct {
	page   uint64
	tables bool // of the tree whose leaves name the tables
}

// pointers follows all pointers of a file, and visits no page twice. bbolt follows a circle of pages
// until the memory is used up, and has no bound for it. So this is before its cursors. It reads the
// kind of each page and its pointers, and nothing else.
type pointers struct {
	r    io.ReaderAt
	seen []bool // by page
	next []pointer
}

func (p *pointers) follow(root uint64) error {
	p.next = append(p.next, pointer{root, true})
	for len(p.next) > 0 {
		at := p.next[len(p.next)-1]
		p.next = p.next[:len(p.next)-1]
		if at.page < 2 || at.page >= uint64(len(p.seen)) {
			return damaged("page %d: beyond the last one, %d", at.page, len(p.seen)-1)
		}
		if p.seen[at.page] {
			return damaged("page %d: in use twice", at.page)
		}
		p.seen[at.page] = true
		if err := p.visit(at); err != nil {
			return err
		}
	}
	return nil
}

// visit adds the pointers of a page.
func (p *pointers) visit(at pointer) error {
	begin := int64(at.page) * pageSize //nolint:gosec // within the file
	head, err := p.read(begin, pageHeader)
	if err != nil {
		return err
	}
	kind, count := binary.NativeEndian.Uint16(head[8:]), int64(binary.NativeEndian.Uint16(head[10:]))
	switch {
	case kind == leafPage && !at.tables:
		return nil
	case kind != leafPage && (kind != branchPage || count == 0):
		return damaged("page %d: neither a branch nor a leaf", at.page)
	}
	elements, err := p.read(begin+pageHeader, count*elementSize)
	if err != nil {
		return err
	}
	for i := range count {
		e := elements[i*elementSize:]
		if kind == branchPage {
			p.next = append(p.next, pointer{binary.NativeEndian.Uint64(e[8:]), at.tables})
		} else if binary.NativeEndian.Uint32(e) == bucketFlag {
			place := begin + pageHeader + i*elementSize + int64(binary.NativeEndian.Uint32(e[4:])) + int64(binary.NativeEndian.Uint32(e[8:]))
			if err := p.table(place); err != nil {
				return err
			}
		}
	}
	return nil
}

// table adds the root of a table. A small table has no page, but a leaf beside its root.
func (p *pointers) table(place int64) error {
	b, err := p.read(place, 2*pageHeader)
	if err != nil {
		return err
	}
	if root := binary.NativeEndian.Uint64(b); root != 0 {
		p.next = append(p.next, pointer{root, false})
	} else if binary.NativeEndian.Uint16(b[pageHeader+8:]) != leafPage {
		return damaged("a small table is not a leaf")
	}
	return nil
}

func (p *pointers) read(at, n int64) ([]byte, error) {
	b := make([]byte, n)
	if _, err := p.r.ReadAt(b, at); err != nil {
		return nil, damaged("page %d cannot be read: %w", at/pageSize, err)
	}
	return b, nil
}
