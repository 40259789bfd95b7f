package embedded

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// The unit in which a disk writes, and the layout of the data file.
const (
	sectorSize = 512
	pageSize   = 4096
)

// dataFile is the file in a data directory.
func dataFile(dir string) string { return filepath.Join(dir, "ratelimit.db") }

// diskImage is the files of a data directory.
type diskImage struct {
	data   []byte
	marker []byte // with the last commit
}

func markerFile(dir string) string { return filepath.Join(dir, "ratelimit.made") }

// memory returns a directory without a disk behind it, if there is one. The test draws the state
// that a disk would have, and thousands of syncs take long.
func memory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "embedded") //nolint:usetesting // t.TempDir is on a disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// image reads the files, and put writes them.
func (w *world) image() (image diskImage) {
	w.t.Helper()
	var err, markerErr error
	image.data, err = os.ReadFile(dataFile(w.dir))
	image.marker, markerErr = os.ReadFile(markerFile(w.dir))
	if err = errors.Join(err, markerErr); err != nil {
		w.fatalf("reading the data file: %v", err)
	}
	return image
}

func (w *world) put(dir string, image diskImage) {
	w.t.Helper()
	err := errors.Join(os.WriteFile(dataFile(dir), image.data, 0o600), os.WriteFile(markerFile(dir), image.marker, 0o600))
	if err != nil {
		w.fatalf("writing a data file: %v", err)
	}
}

// checkCuts writes the batch under way, and checks the recovery from a power cut during the commit.
// It must have the tokens in memory, and no less than the blocks allow.
func (w *world) checkCuts() {
	w.t.Helper()
	before := w.image()
	w.mustSave()
	after := w.image()
	for range 3 {
		dir := memory(w.t)
		w.put(dir, w.cut(before, after))
		s := w.begin(dir)
		w.checkCrash(w.store, s, w.clock(), !w.behind)
		w.kill(s)
		w.counts["checks after a power cut"]++
	}
}

// cutPower simulates a power cut during the commit of the batch under way. The next run starts with
// the state of the disk at that time.
func (w *world) cutPower() {
	w.t.Helper()
	before := w.image()
	w.mustSave()
	after := w.image()
	w.kill(w.store)
	w.put(w.dir, w.cut(before, after))
	w.counts["power cuts"]++
}

// cut draws a state that a disk can have after a power cut during a commit. The tests of package
// datafile list all of them, and prove that there are no others.
func (w *world) cut(before, after diskImage) diskImage {
	r := rand.New(rand.NewPCG(w.r.Uint64(), 0)) // how much is drawn depends on the file
	grown := append(bytes.Clone(before.data), make([]byte, max(len(after.data)-len(before.data), 0))...)
	data, meta := sectors(grown, after.data)
	switch r.IntN(6) {
	case 0:
		return before
	case 1:
	case 2: // some of the data
		overlay(r, grown, after.data, data, r.IntN(101))
	case 3: // all data, and some of the meta page
		overlay(r, grown, after.data, meta, r.IntN(101))
		overlay(r, grown, after.data, data, 100)
	case 4: // and not yet the mark of this commit
		grown = after.data
	default:
		return after
	}
	return diskImage{grown, before.marker}
}

// sectors lists those that a commit changed: of data, and of its meta page.
func sectors(before, after []byte) (data, meta []int) {
	for at := 0; at < len(after); at += sectorSize {
		if bytes.Equal(before[at:at+sectorSize], after[at:at+sectorSize]) {
			continue
		}
		if page := at / pageSize; page >= 2 {
			data = append(data, at)
		} else {
			meta = append(meta, at)
		}
	}
	return data, meta
}

// overlay takes a share of sectors, in percent, from another image.
func overlay(r *rand.Rand, image, from []byte, sectors []int, share int) {
	for _, at := range sectors {
		if r.IntN(100) < share {
			copy(image[at:][:sectorSize], from[at:])
		}
	}
}
