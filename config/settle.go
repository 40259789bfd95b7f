package config

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// fingerprint identifies a file and its content.
type fingerprint struct {
	sum  [sha256.Size]byte // of the content
	err  string            // the reason why there is none
	info fs.FileInfo       // nil = there is none
}

func fingerprintOf(s *source) fingerprint {
	p := fingerprint{sum: sha256.Sum256(s.data), info: s.info}
	if s.err != nil {
		p.err = s.err.Error()
	}
	return p
}

// same reports whether the contents are equal, or the reasons why there is none.
func (p fingerprint) same(q fingerprint) bool { return p.sum == q.sum && p.err == q.err }

// sameFile reports whether both are one file, under any name.
func (p fingerprint) sameFile(q fingerprint) bool {
	return p.info != nil && q.info != nil && os.SameFile(p.info, q.info)
}

// unchanged reports whether the file was not written between the two fingerprints.
func (p fingerprint) unchanged(q fingerprint) bool {
	if p.info == nil || q.info == nil {
		return p.info == nil && q.info == nil && p.err == q.err
	}
	return p.sameFile(q) && p.info.Size() == q.info.Size() && p.info.ModTime().Equal(q.info.ModTime()) && p.same(q)
}

// seen is the files that were read, by name, and the symbolic links on the way to them.
type seen struct {
	files map[string]fingerprint
	links map[string]bool
}

func newSeen(read []source) seen {
	s := seen{make(map[string]fingerprint, len(read)), make(map[string]bool)}
	for i := range read {
		s.files[read[i].name] = fingerprintOf(&read[i])
		for _, link := range read[i].way().links {
			s.links[link] = true
		}
	}
	return s
}

// settling tells complete files from files that are being written. A file is complete at once if a
// rename or a swapped symbolic link brought it to its name, as it was written elsewhere. Any other
// file is complete when it has not changed for a while.
type settling struct {
	moved   map[string]bool // by absolute name: a rename brought the file, and it was not written since
	waiting map[string]wait // by name: files that have changed
}

// wait is a changed file, and the time since when it has its present content.
type wait struct {
	print fingerprint
	since time.Time
}

// maxMoved bounds the length of settling.moved.
const maxMoved = 10_000

// note takes an event of the system about a file.
func (s *settling) note(e fsnotify.Event) {
	if s.moved == nil || len(s.moved) >= maxMoved { // forgetting costs time only
		s.moved = make(map[string]bool)
	}
	switch {
	case e.Has(fsnotify.Create): // a rename is a Create too
		s.moved[e.Name] = true
	case e.Has(fsnotify.Write):
		delete(s.moved, e.Name)
	}
}

// due returns when all files that differ from the last ones will be complete, if none changes
// before. The time is zero when they are complete.
func (s *settling) due(now time.Time, still time.Duration, last *seen, read []source) time.Time {
	var due time.Time
	waiting := make(map[string]wait)
	for i := range read {
		name := read[i].name
		before, known := last.files[name]
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

// came reports whether the file came to its name as a whole.
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
