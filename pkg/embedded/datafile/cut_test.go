package datafile

import (
	"bytes"
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

const sector = 512

// The layout of bbolt's pages, for damage at certain places.
const (
	metaSize     = 64
	freelistPage = 0x10
)

// snapshot is a file between two commits, its records, and its mark.
type snapshot struct {
	image    []byte
	dump     map[string]string
	commit   uint64
	metaPage int // that this commit wrote, 0 or 1
}

func snap(t *testing.T, f *File) snapshot {
	t.Helper()
	image, err := os.ReadFile(f.path())
	if err != nil {
		t.Fatal(err)
	}
	if made := readMark(f.dir); made != f.state.commit {
		t.Fatalf("the mark is of commit %d, want %d", made, f.state.commit)
	}
	_, btx, err := f.beginView()
	if err != nil {
		t.Fatal(err)
	}
	defer rollback(btx)
	return snapshot{image: image, dump: mustDump(t, f), commit: f.state.commit, metaPage: btx.ID() % 2}
}

// random logs the seed, which reproduces the run.
func random(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// change is a transaction of one to a few dozen changes, some over several pages.
func change(r *rand.Rand) func(*Tx) error {
	return func(tx *Tx) error {
		var err error
		for range []int{1, 1, 2, 10, 60}[r.IntN(5)] {
			table := tables()[r.IntN(tableCount)]
			key := fmt.Appendf(nil, "key/%d", r.IntN(150))
			value := bytes.Repeat([]byte{byte(r.IntN(256))}, []int{0, 20, 120, 400}[r.IntN(4)])
			if r.IntN(60) == 0 {
				value = make([]byte, 9000)
			}
			if r.IntN(4) == 0 {
				err = errors.Join(err, tx.Delete(table, key))
			} else {
				err = errors.Join(err, tx.Put(table, key, value))
			}
		}
		return err
	}
}

// history makes commits, and returns the file after each. It grows in small steps,
// so that the files stay small and growing is a part of the history.
func history(t *testing.T, r *rand.Rand, commits int) []snapshot {
	t.Helper()
	f := open(t, t.TempDir())
	f.current.Load().db.AllocSize = 8 * pageSize
	snaps := append(make([]snapshot, 0, 1+commits), snap(t, f))
	for range commits {
		update(t, f, change(r))
		snaps = append(snaps, snap(t, f))
	}
	return snaps
}

// bench opens images, one after the other in one directory.
type bench struct {
	dir   string
	count int
	late  int // damage that only later changes revealed
}

// open returns the records that Open finds in an image, beside a mark. Some of the images that open are also read
// by key, changed and opened again. That fails if pages in use were treated as free.
func (b *bench) open(t *testing.T, image []byte, mark uint64) (map[string]string, error) {
	t.Helper()
	b.count++
	err := errors.Join(os.WriteFile(filepath.Join(b.dir, fileName), image, 0o600),
		os.WriteFile(filepath.Join(b.dir, markerName), append([]byte(markerText), encodeMark(mark)...), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(b.dir, Options{})
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // closed below, or the test failed
	found, err := dump(f)
	if err != nil || b.count%4 != 0 {
		return found, err
	}
	get(t, f, found)
	want := maps.Clone(found)
	for i := range 20 {
		key, value := fmt.Sprintf("later/%d", i), string(bytes.Repeat([]byte("x"), 500))
		err = errors.Join(err, f.Update(func(tx *Tx) error { return tx.Put(Audit, []byte(key), []byte(value)) }))
		want["audit/"+key] = value
	}
	var again *File
	if err = errors.Join(err, f.Close()); err == nil {
		again, err = Open(b.dir, Options{})
	}
	if errors.Is(err, ErrCorrupt) {
		b.late++
		return nil, err
	}
	if err != nil {
		t.Fatalf("opened, but not again after changes: %v", err)
	}
	defer again.Close() //nolint:errcheck // only read
	if diff := cmp.Diff(want, mustDump(t, again)); diff != "" {
		t.Fatalf("after changes and opening again (-want +got):\n%s", diff)
	}
	return found, nil
}

// memory returns a directory without a disk behind it, if there is one. The images have the states
// that a disk would have, and thousands of syncs take long.
func memory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "datafile") //nolint:usetesting // t.TempDir is on a disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// get fails the test when a record cannot be found by its key.
func get(t *testing.T, f *File, records map[string]string) {
	t.Helper()
	err := f.View(func(tx *Tx) error {
		for k, want := range records {
			table, key, _ := strings.Cut(k, "/")
			if got := tx.Get(Table(table), []byte(key)); string(got) != want {
				return fmt.Errorf("%s: got %q, want %q", k, got, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// cut is a state of the disk after a power cut, and the records that it must have: those before the
// commit, after it, or either.
type cut struct {
	name          string
	image         []byte
	mark          uint64
	before, after bool
}

// cuts lists the states that a power cut during a commit can leave. A disk writes a sector as a
// whole. Sectors that are written and not yet synced are there in any part and order. A commit goes
//
//	truncate to grow, fsync   the file is longer, or not yet
//	write pages, fdatasync    free ones only: any of their sectors are there
//	write meta, fdatasync     all data is there; of the meta page any sectors, and,
//	                          for a disk worse than that, any part of them
//	write the mark            all is there; the mark, or an older one: it is not synced
//
// and there is no other write, so these are all the states.
func cuts(r *rand.Rand, before, after snapshot) []cut {
	metaPage := after.metaPage
	data, metaSectors := changes(before, after)
	var states []cut
	add := func(name string, image []byte, isBefore, isAfter bool) {
		mark := before.commit - uint64(r.IntN(2))
		states = append(states, cut{name, image, mark, isBefore, isAfter})
	}
	longer := append(bytes.Clone(before.image), make([]byte, len(after.image)-len(before.image))...)
	add("nothing", before.image, true, false)
	add("grown", longer, true, false)
	for _, set := range subsets(r, len(data), 40) {
		add(fmt.Sprintf("sectors %v of %d", set, len(data)), overlay(longer, after.image, data, set), true, false)
	}
	complete := overlay(longer, after.image, data, all(len(data)))
	for _, set := range subsets(r, len(metaSectors), 16) {
		add(fmt.Sprintf("meta sectors %v", set), overlay(complete, after.image, metaSectors, set), true, true)
	}
	for range 16 {
		torn := bytes.Clone(complete)
		from, to := metaPage*pageSize, metaPage*pageSize+pageHeader+r.IntN(metaSize+1)
		copy(torn[from:to], after.image[from:to])
		add(fmt.Sprintf("meta torn at %d", to-from), torn, true, true)
	}
	add("not marked", after.image, false, true)
	return append(states, cut{"all", after.image, after.commit, false, true})
}

// changes lists the sectors that differ: of data, and of the meta pages.
func changes(before, after snapshot) (data, metaPages []int) {
	for at := 0; at < len(after.image); at += sector {
		old := make([]byte, sector)
		if at < len(before.image) {
			old = before.image[at : at+sector]
		}
		switch page := at / pageSize; {
		case bytes.Equal(old, after.image[at:at+sector]):
		case page >= 2:
			data = append(data, at)
		default:
			metaPages = append(metaPages, at)
		}
	}
	return data, metaPages
}

func all(n int) []int {
	set := make([]int, n)
	for i := range set {
		set[i] = i
	}
	return set
}

// subsets returns all subsets of n, or limit random ones when there are more.
func subsets(r *rand.Rand, n, limit int) [][]int {
	every := n < 30 && 1<<n <= limit
	if every {
		limit = 1 << n
	}
	sets := make([][]int, 0, limit)
	for i := range limit {
		var set []int
		share := r.IntN(101)
		for j := range n {
			if every && i>>j&1 == 1 || !every && r.IntN(100) < share {
				set = append(set, j)
			}
		}
		sets = append(sets, set)
	}
	return sets
}

// overlay returns base with the chosen sectors of another image.
func overlay(base, from []byte, sectors, set []int) []byte {
	image := bytes.Clone(base)
	for _, i := range set {
		copy(image[sectors[i]:][:sector], from[sectors[i]:])
	}
	return image
}

func TestPowerCutAtEveryCommit(t *testing.T) {
	t.Parallel()
	r := random(t)
	snaps := history(t, r, historyCommits)
	b := bench{dir: memory(t)}
	for i, after := range snaps[1:] {
		before := snaps[i]
		if _, meta := changes(before, after); len(meta) != 1 || meta[0]/pageSize != after.metaPage {
			t.Fatalf("commit %d: sectors at %v changed, want one of meta page %d", i+1, meta, after.metaPage)
		}
		for _, c := range cuts(r, before, after) {
			got, err := b.open(t, c.image, c.mark)
			if err != nil {
				t.Fatalf("commit %d, %s: %v", i+1, c.name, err)
			}
			isBefore, isAfter := c.before && maps.Equal(got, before.dump), c.after && maps.Equal(got, after.dump)
			if !isBefore && !isAfter {
				t.Fatalf("commit %d, %s: neither the state before nor after\nfrom before: %s\nfrom after: %s",
					i+1, c.name, cmp.Diff(before.dump, got), cmp.Diff(after.dump, got))
			}
		}
	}
	t.Logf("%d states opened", b.count)
}

// A power cut while a directory is new leaves a part of the file beside its place.
func TestPowerCutWhileTheFileIsMade(t *testing.T) {
	r := random(t)
	whole := history(t, r, 0)[0].image
	for _, n := range []int{0, 1, sector, pageSize, 3 * pageSize, len(whole)} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, newName), whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		f := open(t, dir)
		if got := mustDump(t, f); len(got) != 0 {
			t.Errorf("%d bytes left over: %v, want an empty file", n, got)
		}
		if _, err := os.Stat(filepath.Join(dir, newName)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%d bytes left over: still there: %v", n, err)
		}
	}
}
