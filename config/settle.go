package config

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// fingerprint tells the content of a file from another, and the file itself.
type fingerprint struct {
	sum  [sha256.Size]byte // of the content
	err  string            // why there is none
	info fs.FileInfo       // nil = there is none
}

func fingerprintOf(s *source) fingerprint {
	p := fingerprint{sum: sha256.Sum256(s.data), info: s.info}
	if s.err != nil {
		p.err = s.err.Error()
	}
	return p
}

// same reports whether the content is the same, or why there is none.
func (p fingerprint) same(q fingerprint) bool { return p.sum == q.sum && p.err == q.err }

// sameFile reports whether it is one file in both, under any name.
func (p fingerprint) sameFile(q fingerprint) bool {
	return p.info != nil && q.info != nil && os.SameFile(p.info, q.info)
}

// unchanged reports whether the file was not written between the two.
func (p fingerprint) unchanged(q fingerprint) bool {
	if p.info == nil || q.info == nil {
		return p.info == nil && q.info == nil && p.err == q.err
	}
	return p.sameFile(q) && p.info.Size() == q.info.Size() && p.info.ModTime().Equal(q.info.ModTime()) && p.same(q)
}

// remember notes the files that were read, and the links on the way to it.
func (o *origin) remember(read []source) {
	o.read, o.links = make(map[string]fingerprint, len(read)), make(map[string]bool)
	for i := range read {
		o.read[read[i].name] = fingerprintOf(&read[i])
		if read[i].name == ShippedName || read[i].name == noFile {
			continue
		}
		for _, link := range follow(read[i].name).links {
			o.links[link] = true
		}
	}
}

// settling tells files that are complete from files that are being written. A
// file that is moved into its place, by a rename or by a symbolic link that is swapped, is
// complete: it was written elsewhere. All else is complete when it has not changed for a while.
type settling struct {
	moved   map[string]bool // by absolute name: it came by a rename, and was not written since
	waiting map[string]wait // by name: files that have changed
}

// wait is a file that has changed, and since when it is as it is.
type wait struct {
	print fingerprint
	since time.Time
}

// maxMoved bounds how many names are remembered of which the system told something.
const maxMoved = 10_000

// tell notes a sign of the system about a file.
func (s *settling) tell(e fsnotify.Event) {
	if s.moved == nil || len(s.moved) >= maxMoved { // forgetting costs time only
		s.moved = make(map[string]bool)
	}
	switch {
	case e.Has(fsnotify.Create): // also by a rename
		s.moved[e.Name] = true
	case e.Has(fsnotify.Write):
		delete(s.moved, e.Name)
	}
}

// due returns when all files that differ from the last ones will be complete, if none
// changes before; zero when they are.
func (s *settling) due(now time.Time, still time.Duration, last *origin, read []source) time.Time {
	var due time.Time
	waiting := make(map[string]wait)
	for i := range read {
		name := read[i].name
		before, known := last.read[name]
		w := wait{print: fingerprintOf(&read[i]), since: now}
		if known && w.print.same(before) || s.came(name, w.print, before, last.links) {
			continue
		}
		if was, ok := s.waiting[name]; ok && was.print.unchanged(w.print) {
			w.since = was.since
		}
		waiting[name] = w
		if end := w.since.Add(still); end.After(due) {
			due = end
		}
	}
	s.waiting = waiting
	if !due.After(now) {
		return time.Time{}
	}
	return due
}

// came reports whether a file has come to its name whole.
func (s *settling) came(name string, p, before fingerprint, links map[string]bool) bool {
	if p.info == nil || p.info.Size() == 0 {
		return false
	}
	w := follow(filepath.FromSlash(name))
	for _, link := range w.links {
		if !links[link] {
			return true
		}
	}
	return s.moved[w.file] && !p.sameFile(before)
}
