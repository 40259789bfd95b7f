package datafile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// damages calls try with images that are damaged somewhere. A whole file that was reverted to an
// older one is not among them: nothing in the file can reveal that.
func damages(r *rand.Rand, snaps []snapshot, try func(name string, image []byte)) {
	image := snaps[len(snaps)-1].image
	with := func(at int, b []byte) []byte {
		changed := bytes.Clone(image)
		copy(changed[at:], b)
		return changed
	}
	flip := func(at int) {
		b := image[at] ^ 1<<r.IntN(8)
		try(fmt.Sprintf("byte %d of page %d: %#x for %#x", at%pageSize, at/pageSize, b, image[at]), with(at, []byte{b}))
	}
	pages := len(image) / pageSize
	for page := range pages {
		for range 16 {
			flip(page*pageSize + r.IntN(pageHeader+4*elementSize)) // headers and first elements
			flip(page*pageSize + r.IntN(pageSize))
		}
		try(fmt.Sprintf("page %d zeroed", page), with(page*pageSize, make([]byte, pageSize)))
		try(fmt.Sprintf("half of page %d zeroed", page), with(page*pageSize+pageSize/2, make([]byte, pageSize/2)))
		other := r.IntN(pages)
		try(fmt.Sprintf("page %d is page %d", page, other), with(page*pageSize, image[other*pageSize:][:pageSize]))
		for back := 1; back < min(len(snaps), 8); back++ {
			if old := snaps[len(snaps)-1-back].image; len(old) >= (page+1)*pageSize {
				try(fmt.Sprintf("page %d of %d commits ago", page, back), with(page*pageSize, old[page*pageSize:][:pageSize]))
			}
		}
	}
	for range 300 {
		try("pages of older copies", olderPages(r, snaps))
	}
	for n := 0; n < len(image); n += pageSize {
		try(fmt.Sprintf("cut to %d bytes", n), image[:n])
		odd := n + 1 + r.IntN(min(pageSize, len(image)-n)-1)
		try(fmt.Sprintf("cut to %d bytes", odd), image[:odd])
	}
	for _, n := range []int{1, sector, pageSize, 3*pageSize + 7} {
		garbage := make([]byte, n)
		for i := range garbage {
			garbage[i] = byte(r.Uint32())
		}
		try(fmt.Sprintf("%d bytes appended", n), append(bytes.Clone(image), garbage...))
	}
}

// olderPages puts pages of an older copy in the newest, but never both meta pages. With both, and
// without reuse of a page, the whole older state would be there.
func olderPages(r *rand.Rand, snaps []snapshot) []byte {
	image := bytes.Clone(snaps[len(snaps)-1].image)
	old := snaps[len(snaps)-2-r.IntN(6)].image
	share := r.IntN(101)
	first := r.IntN(2)
	for page := range len(old) / pageSize {
		if page < 2 && page != first || r.IntN(100) >= share {
			continue
		}
		copy(image[page*pageSize:], old[page*pageSize:][:pageSize])
	}
	return image
}

func TestDamageIsFoundOrHarmless(t *testing.T) {
	t.Parallel()
	r := random(t)
	snaps := history(t, r, historyCommits)
	last := snaps[len(snaps)-1]
	want := last.dump
	b := bench{dir: memory(t)}
	var n, opened int
	damages(r, snaps, func(name string, image []byte) {
		n++
		if n%damageStep > 0 {
			return
		}
		got, err := b.open(t, image, last.commit)
		switch {
		case errors.Is(err, ErrCorrupt):
			if !strings.Contains(err.Error(), "ratelimit restore") {
				t.Fatalf("%s: %v, want a remedy", name, err)
			}
		case err != nil:
			t.Fatalf("%s: %v, want ErrCorrupt", name, err)
		case !maps.Equal(got, want):
			t.Fatalf("%s: opened with another state (-want +got):\n%s", name, cmp.Diff(want, got))
		default:
			opened++
		}
	})
	t.Logf("%d files damaged, %d of them where nothing is; %d found after changes", b.count, opened, b.late)
	if b.late > b.count/500 {
		t.Errorf("the damage of %d files was found late, want only that of keys in branches, which is rare", b.late)
	}
	if opened == 0 || opened == b.count {
		t.Errorf("%d of %d damaged files opened: the damage was not where it matters, or not only", opened, b.count)
	}
}

// A page of a commit must not be reverted either, although the page is intact.
func TestAMetaPageThatWentBackIsFound(t *testing.T) {
	snaps := history(t, random(t), 20)
	b := bench{dir: memory(t)}
	for i, s := range snaps[2:] {
		page := s.metaPage
		image := bytes.Clone(s.image)
		copy(image[page*pageSize:][:pageSize], snaps[i].image[page*pageSize:])
		if _, err := b.open(t, image, s.commit); !errors.Is(err, ErrCorrupt) {
			t.Errorf("commit %d is gone: %v, want ErrCorrupt", s.commit, err)
		}
	}
}

// A false list of free pages would later cause pages in use to be overwritten.
func TestAWrongListOfFreePagesIsFound(t *testing.T) {
	snaps := history(t, random(t), 20)
	last := snaps[len(snaps)-1]
	image := last.image
	meta := func(at int) uint64 {
		return binary.NativeEndian.Uint64(image[last.metaPage*pageSize+pageHeader+at:])
	}
	root, freelist, pages := meta(16), meta(32), meta(40)
	list := int(freelist) * pageSize
	count := binary.NativeEndian.Uint16(image[list+10:])
	if kind := image[list+8]; kind != freelistPage || count < 3 {
		t.Fatalf("a page of kind %d with %d ids, want a list of free pages", kind, count)
	}
	id := func(image []byte, i int) []byte { return image[list+pageHeader+8*i:][:8] }
	b := bench{dir: memory(t)}
	for name, damage := range map[string]func(image []byte){
		"a page in use is free":   func(image []byte) { binary.NativeEndian.PutUint64(id(image, 1), root) },
		"a page is free twice":    func(image []byte) { copy(id(image, 1), id(image, 0)) },
		"a page beyond the end":   func(image []byte) { binary.NativeEndian.PutUint64(id(image, 1), pages) },
		"a page is missing":       func(image []byte) { binary.NativeEndian.PutUint16(image[list+10:], count-1) },
		"the list is free":        func(image []byte) { binary.NativeEndian.PutUint64(id(image, 1), freelist) },
		"more than fit":           func(image []byte) { binary.NativeEndian.PutUint16(image[list+10:], 0xFFFE) },
		"many more than fit":      func(image []byte) { binary.NativeEndian.PutUint16(image[list+10:], 0xFFFF) },
		"it is something else":    func(image []byte) { binary.NativeEndian.PutUint16(image[list+8:], 0x02) },
		"it goes on for too long": func(image []byte) { binary.NativeEndian.PutUint32(image[list+12:], 1<<30) },
	} {
		image := bytes.Clone(image)
		damage(image)
		if _, err := b.open(t, image, last.commit); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
	}
}

// bbolt would follow a circle of pages until the memory is used up.
func TestACircleOfPagesIsFound(t *testing.T) {
	snaps := history(t, random(t), 30)
	last := snaps[len(snaps)-1]
	b := bench{dir: memory(t)}
	var branches int
	for page := 2; page < len(last.image)/pageSize; page++ {
		at := last.image[page*pageSize:]
		if binary.NativeEndian.Uint16(at[8:]) != branchPage {
			continue
		}
		branches++
		for i := range binary.NativeEndian.Uint16(at[10:]) {
			image := bytes.Clone(last.image)
			binary.NativeEndian.PutUint64(image[page*pageSize+pageHeader+int(i)*elementSize+8:], uint64(page))
			got, err := b.open(t, image, last.commit)
			if err == nil && !maps.Equal(got, last.dump) || err != nil && !errors.Is(err, ErrCorrupt) {
				t.Errorf("pointer %d of page %d leads to itself: %v, want ErrCorrupt unless the page is free", i, page, err)
			}
		}
	}
	// A table without records is beside its name, and its leaf is no branch.
	f := open(t, t.TempDir())
	empty := snap(t, f)
	for at := 2 * pageSize; at < len(empty.image); at++ {
		name := []byte(Settled)
		if !bytes.HasPrefix(empty.image[at:], append(name, make([]byte, 16)...)) {
			continue
		}
		branches++
		image := bytes.Clone(empty.image)
		image[at+len(name)+16+8] = branchPage
		got, err := b.open(t, image, empty.commit)
		if err == nil && !maps.Equal(got, empty.dump) || err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("an empty table that is a branch: %v, want ErrCorrupt", err)
		}
	}
	if branches < 2 || b.count == 0 {
		t.Errorf("%d branches, %d files", branches, b.count)
	}
}

// If only values change, and pages are reused in turn, an older page fits so well that only the
// sums of the records reveal it.
func TestAPageThatWentBackIsFound(t *testing.T) {
	t.Parallel()
	f := open(t, t.TempDir())
	f.current.Load().db.AllocSize = 8 * pageSize
	snaps := make([]snapshot, 0, staleCommits)
	for n := range staleCommits {
		update(t, f, func(tx *Tx) error {
			for i := range 60 {
				if n > 0 && i != 7 {
					continue
				}
				if err := tx.Put(Buckets, fmt.Appendf(nil, "%03d", i), bytes.Repeat([]byte{byte(n)}, 200)); err != nil {
					return err
				}
			}
			return nil
		})
		snaps = append(snaps, snap(t, f))
	}
	b := bench{dir: memory(t)}
	var found int
	for i, s := range snaps {
		for _, old := range snaps[max(0, i-8):i] {
			for page := range len(old.image) / pageSize {
				image := bytes.Clone(s.image)
				copy(image[page*pageSize:][:pageSize], old.image[page*pageSize:])
				got, err := b.open(t, image, s.commit)
				switch {
				case errors.Is(err, ErrCorrupt):
					found++
				case err != nil || !maps.Equal(got, s.dump):
					t.Fatalf("page %d of commit %d in %d: %v, %s", page, old.commit, s.commit, err, cmp.Diff(s.dump, got))
				}
			}
		}
	}
	if found < staleFound {
		t.Errorf("%d older pages were refused: too few to matter", found)
	}
}

// A value that is damaged while the file is open fails the transaction that reads it.
func TestDamageWhileOpen(t *testing.T) {
	f := open(t, t.TempDir())
	value := strings.Repeat("value", 300)
	put(t, f, Buckets, "k", value)
	image, err := os.ReadFile(f.path())
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; ; { // in all pages that have it, used or not
		i := bytes.Index(image[at:], []byte(value))
		if i < 0 {
			break
		}
		if _, err := f.current.Load().file.WriteAt([]byte("X"), int64(at+i)); err != nil {
			t.Fatal(err)
		}
		at += i + len(value)
	}
	read := func(tx *Tx) error { _ = tx.Get(Buckets, []byte("k")); return nil }
	each := func(tx *Tx) error { return tx.Each(Buckets, nil, func(_, _ []byte) error { return nil }) }
	write := func(tx *Tx) error { return tx.Put(Buckets, []byte("k"), nil) }
	for name, err := range map[string]error{
		"View with Get": f.View(read), "View with Each": f.View(each),
		"Update with Get": f.Update(read), "Update with Put": f.Update(write), "Compact": f.Compact(nil),
	} {
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), `"k"`) {
			t.Errorf("%s: %v, want ErrCorrupt with the key", name, err)
		}
	}
}

func TestFilesThatAreNoDataFiles(t *testing.T) {
	whole := history(t, random(t), 3)[3].image
	ofFormat := func(version byte) []byte {
		var s sealer
		was := s.seal(reserved, formatKey(), formatBytes())
		return bytes.ReplaceAll(whole, was, s.seal(reserved, formatKey(), []byte{version, 0, 0, 0}))
	}

	tests := []struct {
		name  string
		image []byte
		err   error
		says  []string
	}{
		{"empty", nil, ErrCorrupt, []string{"0 bytes", "restore a backup"}},
		{"text", bytes.Repeat([]byte("text\n"), 2000), ErrCorrupt, []string{"no meta page", "restore a backup"}},
		{"newer format", ofFormat(99), ErrVersion, []string{"another format, 99", "reads 1"}},
		{"format before the first", ofFormat(0), ErrVersion, []string{"another format, 0", "reads 1"}},
		{"cut off", whole[:3*pageSize], ErrCorrupt, []string{"it was cut off"}},
		{"cut off in a page", whole[:9000], ErrCorrupt, []string{"it was cut off"}},
	}
	for _, test := range tests {
		dir := t.TempDir()
		path := filepath.Join(dir, fileName)
		if err := os.WriteFile(path, test.image, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, readOnly := range []bool{false, true} {
			_, err := Open(dir, Options{ReadOnly: readOnly})
			if !errors.Is(err, test.err) {
				t.Errorf("%s: %v, want %q", test.name, err, test.err)
				continue
			}
			for _, says := range append(test.says, path) {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%s: %q does not say %q", test.name, err, says)
				}
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, test.image) {
			t.Errorf("%s: the file was changed, or is gone: %v", test.name, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(uint32(0), []byte{0})
	f.Add(uint32(2*pageSize+10), []byte{0xff, 0xff})
	f.Add(uint32(3*pageSize+pageHeader+4), []byte{0xff, 0xff, 0xff, 0x7f})
	var snaps []snapshot
	f.Fuzz(func(t *testing.T, at uint32, patch []byte) {
		if snaps == nil {
			snaps = history(t, rand.New(rand.NewPCG(1, 2)), 12)
		}
		last := snaps[len(snaps)-1]
		image := bytes.Clone(last.image)
		copy(image[int(at)%len(image):], patch)
		b := bench{dir: memory(t)}
		got, err := b.open(t, image, last.commit)
		if err == nil && !maps.Equal(got, last.dump) || err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
			t.Errorf("%v, %s", err, cmp.Diff(last.dump, got))
		}
	})
}
