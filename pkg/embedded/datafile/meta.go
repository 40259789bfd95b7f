package datafile

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"hash/fnv"
	"io"
)

// pageSize is the size of the pages of every file, on any machine, so that backups can move.
const pageSize = 4096

const (
	pageHeader = 16
	metaMagic  = 0xED0CDAED
	metaLayout = 2
	metaSize   = 64

	// mark is written beside a meta page, in another sector of its page.
	markOffset = 2048
	markSize   = 20
)

func markMagic() []byte { return []byte("commit\x00\x01") }

// meta is a meta page of bbolt. A file has two, and transactions use them in turn.
type meta struct {
	page     uint64 // 0 or 1
	root     uint64
	freelist uint64
	pages    uint64 // in use or free; the file may be longer
	commit   uint64 // bbolt's transaction id
}

// parseMeta reads a meta page; false when it is not intact.
func parseMeta(page []byte) (meta, bool) {
	b := page[pageHeader : pageHeader+metaSize]
	u32 := func(at int) uint32 { return binary.NativeEndian.Uint32(b[at:]) }
	u64 := func(at int) uint64 { return binary.NativeEndian.Uint64(b[at:]) }
	sum := fnv.New64a()
	_, _ = sum.Write(b[:56])
	if u32(0) != metaMagic || u32(4) != metaLayout || u32(8) != pageSize || u64(56) != sum.Sum64() {
		return meta{}, false
	}
	return meta{root: u64(16), freelist: u64(32), pages: u64(40), commit: u64(48)}, true
}

// head is the content of the first two pages of a file.
type head struct {
	meta          // the newest intact one
	newest uint64 // the newest commit that was finished for certain
}

// readHead finds the newest transaction. bbolt alone would take the older meta page when the newer
// one is not intact. That is right after a power cut during a commit, and wrong when the page was
// damaged later. So each commit, once on disk, is marked beside the other meta page.
func readHead(r io.ReaderAt) (head, error) {
	var h head
	var whole, broken int
	for i := range uint64(2) {
		page := make([]byte, pageSize)
		if _, err := r.ReadAt(page, int64(i)*pageSize); err != nil {
			return head{}, damaged("page %d cannot be read: %w", i, err)
		}
		m, ok := parseMeta(page)
		m.page = i
		if ok {
			whole++
			h.newest = max(h.newest, m.commit)
			if whole == 1 || m.commit > h.commit {
				h.meta = m
			}
		}
		commit, ok := parseMark(page[markOffset:][:markSize])
		if !ok {
			broken++
		}
		h.newest = max(h.newest, commit)
	}
	switch {
	case whole == 0:
		return head{}, damaged("it has no meta page: not a data file, or overwritten")
	case whole == 1 && broken > 0:
		return head{}, damaged("a meta page and the mark beside the other are not whole")
	}
	return h, nil
}

// parseMark returns the commit of a mark, 0 when there is none; false when it is not intact.
func parseMark(b []byte) (uint64, bool) {
	if bytes.Equal(b, make([]byte, markSize)) {
		return 0, true
	}
	if !bytes.Equal(b[:8], markMagic()) || binary.LittleEndian.Uint32(b[16:]) != crc32.ChecksumIEEE(b[:16]) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[8:]), true
}

// writeMark records beside the other meta page that the one in metaPage, of this commit, is on
// disk.
func writeMark(w io.WriterAt, metaPage, commit uint64) error {
	b := append(make([]byte, 0, markSize), markMagic()...)
	b = binary.LittleEndian.AppendUint64(b, commit)
	b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	_, err := w.WriteAt(b, int64(1-metaPage)*pageSize+markOffset)
	return err
}
