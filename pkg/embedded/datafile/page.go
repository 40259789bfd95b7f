package datafile

import "encoding/binary"

// Kinds of pages, and the flag of a bucket in a leaf.
const (
	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10
	bucketFlag   = 0x01

	elementSize  = 16
	bucketHeader = 16
	maxDepth     = 40 // of a tree; two keys a page make more pages than an int64 counts
)

// page is a page of bbolt's file, with all elements inside it.
type page struct {
	id    uint64
	kind  uint16
	count int
	bytes []byte
}

func parsePage(b []byte) (page, error) {
	if len(b) < pageHeader {
		return page{}, damaged("a page of %d bytes", len(b))
	}
	p := page{
		id:    binary.NativeEndian.Uint64(b),
		kind:  binary.NativeEndian.Uint16(b[8:]),
		count: int(binary.NativeEndian.Uint16(b[10:])),
		bytes: b,
	}
	if p.kind != freelistPage && pageHeader+p.count*elementSize > len(b) {
		return page{}, damaged("page %d: %d elements do not fit in it", p.id, p.count)
	}
	return p, nil
}

// slice returns n bytes at a distance from an element; false when they are not
// within the page.
func (p page) slice(element int, distance, n uint64) ([]byte, bool) {
	from := uint64(pageHeader+element*elementSize) + distance //nolint:gosec // a count is positive
	if from+n > uint64(len(p.bytes)) {
		return nil, false
	}
	return p.bytes[from : from+n : from+n], true
}

func (p page) u32(element, at int) uint32 {
	return binary.NativeEndian.Uint32(p.bytes[pageHeader+element*elementSize+at:])
}

func (p page) leafElement(i int) (flags uint32, key, value []byte, err error) {
	distance, keySize, valueSize := uint64(p.u32(i, 4)), uint64(p.u32(i, 8)), uint64(p.u32(i, 12))
	both, ok := p.slice(i, distance, keySize+valueSize)
	if !ok {
		return 0, nil, nil, damaged("page %d: element %d is not within it", p.id, i)
	}
	return p.u32(i, 0), both[:keySize:keySize], both[keySize:], nil
}

func (p page) branchElement(i int) (key []byte, child uint64, err error) {
	key, ok := p.slice(i, uint64(p.u32(i, 0)), uint64(p.u32(i, 4)))
	if !ok {
		return nil, 0, damaged("page %d: element %d is not within it", p.id, i)
	}
	return key, binary.NativeEndian.Uint64(p.bytes[pageHeader+i*elementSize+8:]), nil
}

// freeIDs returns the ids in a list of free pages, eight bytes each; false when the page is no such
// list. A count that does not fit in the header is before the ids.
func (p page) freeIDs() ([]byte, bool) {
	if p.kind != freelistPage {
		return nil, false
	}
	n, ids := uint64(p.count), p.bytes[pageHeader:] //nolint:gosec // a count is positive
	if n == 0xFFFF {
		n, ids = binary.NativeEndian.Uint64(ids), ids[8:]
	}
	if n > uint64(len(ids)/8) {
		return nil, false
	}
	return ids[:n*8], true
}
