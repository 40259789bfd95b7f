package config

import (
	"cmp"
	"context"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
)

// Watch calls apply with every new configuration until ctx is done; then it returns nil. It follows
// the file itself, its includes, and new files in a directory or of a pattern. It also follows the
// symbolic links on the way to them, such as those of a Kubernetes ConfigMap.
//
// Watch reads a file at once if a rename or a swapped symbolic link brought it to its name. It
// reads a file that is written in place, or is missing, when it has been so for Options.Still.
//
// A reload is all or nothing. After a mistake in any file, apply gets a nil Config and the error of
// [Load], once; the caller should keep the configuration in force. When the files are valid again
// it gets a Config, even if it equals the one before. Files that lack a domain in force, or all its
// rules, are an error for Options.Gone, a [GoneError]; then they take effect. Files in which a
// domain in force has no list of rules are an error for as long as they are so, an [EmptiedError].
//
// The Warnings of a new configuration name the settings that differ from those of Options.Current
// and take effect only at the next start.
//
// The goroutine of Watch calls apply, one call after another. Where the system cannot watch
// directories, Watch only compares contents.
func Watch(ctx context.Context, path string, o Options, apply func(*Config, error)) error {
	w := newWatcher(filepath.ToSlash(path), o, apply)
	events, err := fsnotify.NewWatcher()
	if err == nil {
		w.events = events
		defer func() { _ = events.Close() }()
	}
	w.run(ctx)
	return nil
}

// watcher is the state of one Watch.
type watcher struct {
	fsys    fs.FS
	path    string
	options Options
	apply   func(*Config, error)

	events   *fsnotify.Watcher // nil = the system cannot watch directories
	includes []include
	keys     []string
	last     string    // hash of the files that were last delivered, valid or not; "" = none yet
	seen     seen      // the files of that delivery
	started  []setting // of the configuration at the start of the program; nil = not known yet
	settling settling
	missing  missing
}

func newWatcher(path string, o Options, apply func(*Config, error)) *watcher {
	o.Debounce = cmp.Or(o.Debounce, 100*time.Millisecond)
	o.Still = cmp.Or(o.Still, 2*time.Second)
	o.Gone = cmp.Or(o.Gone, 5*time.Second)
	o.Poll = cmp.Or(o.Poll, 3*time.Second)
	w := &watcher{fsys: HostFS{}, path: path, options: o, apply: apply}
	if c := o.Current; c != nil {
		w.last, w.seen, w.started = c.Hash, c.seen, c.settings
		w.missing.use(c)
	}
	return w
}

func (w *watcher) run(ctx context.Context) {
	poll := time.NewTicker(w.options.Poll)
	defer poll.Stop()
	var changed <-chan fsnotify.Event
	var trouble <-chan error
	if w.events != nil {
		changed, trouble = w.events.Events, w.events.Errors
	}
	due := newAlarm()
	defer due.Stop()
	due.set(w.load(time.Now(), false))
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-changed:
			w.settling.note(e)
			due.set(time.Now().Add(w.options.Debounce))
		case <-trouble: //nolint:errcheck // an error says that events were lost, so there may be a change
			due.set(time.Now().Add(w.options.Debounce))
		case <-w.options.Reload:
			due.clear()
			due.set(w.load(time.Now(), true))
		case <-due.C:
			due.clear()
			due.set(w.reload(time.Now()))
		case <-poll.C:
			due.set(w.reload(time.Now()))
		}
	}
}

// reload loads the configuration if its files have changed. Like load it returns when to read them
// again.
func (w *watcher) reload(now time.Time) time.Time {
	in := newReader(w.fsys)
	self := in.main(w.path, w.options)
	found := readIncludes(in, self.name, w.includes)
	read := slices.Concat([]source{self}, found.sources)
	for _, name := range w.keys {
		read = append(read, in.key(name))
	}
	if hash(read) == w.last && len(w.missing.since) == 0 {
		w.settling.waiting = nil
		return w.watch(now, read, found.dirs)
	}
	return w.load(now, false)
}

// load delivers the configuration if it is new and complete. If it is asked for, it delivers the
// files as they are. It returns when to read them again, and the zero time for never. There are
// three reasons: it began to watch directories that may have changed just before, a file is being
// written, or a domain is gone.
func (w *watcher) load(now time.Time, asked bool) time.Time {
	l := load(w.fsys, w.path, nil, w.options)
	w.includes, w.keys = l.includes, l.keys
	again := w.watch(now, l.read, l.dirs)
	first := w.last == ""
	if l.hash == w.last && len(w.missing.since) == 0 && !asked {
		return again
	}
	if !asked && !first {
		if due := w.settling.due(now, w.options.Still, &w.seen, l.read); !due.IsZero() {
			return earliest(again, due)
		}
	}
	cfg, err := l.result()
	due, deliver := w.lack(now, cfg, l.hash != w.last || asked, &err)
	again = earliest(again, due)
	if !deliver {
		return again
	}
	w.last = l.hash
	w.seen = newSeen(l.read)
	w.deliver(cfg, err, first && !asked)
	return again
}

// lack looks for domains in force that a configuration lacks. While these must stay in force it
// sets err to a GoneError or an EmptiedError. It returns when to read the files again, and whether
// to deliver the result.
func (w *watcher) lack(now time.Time, cfg *Config, isNew bool, err *error) (due time.Time, deliver bool) {
	if *err != nil {
		w.missing.forget()
		return time.Time{}, isNew
	}
	if names := w.missing.emptied(cfg); len(names) > 0 {
		*err = &EmptiedError{Domains: names}
		w.missing.forget()
		return time.Time{}, isNew
	}
	gone, due := w.missing.update(now, w.options.Gone, cfg)
	if due.IsZero() {
		return time.Time{}, true
	}
	*err = &GoneError{Domains: gone, After: w.options.Gone}
	return due, isNew
}

// deliver calls apply with a configuration, or with the reason why there is none.
func (w *watcher) deliver(cfg *Config, err error, first bool) {
	if err != nil {
		w.apply(nil, err)
		return
	}
	w.missing.use(cfg)
	if w.started == nil {
		w.started = cfg.settings
	}
	if first {
		return // the program runs with it
	}
	cfg.Restart = cfg.restart(w.started)
	cfg.Warnings = append(cfg.Warnings, cfg.Restart...)
	cfg.Warnings.Sort()
	w.apply(cfg, nil)
}

// earliest returns the earlier of two times. A zero time counts as none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// watch watches the directories of the files, and no others. It returns when to read the files
// again: soon where some directories were not watched before, otherwise never.
func (w *watcher) watch(now time.Time, read []source, more []string) (again time.Time) {
	if w.events == nil {
		return again
	}
	var dirs []string
	for _, s := range read {
		dirs = append(dirs, s.way().dirs...)
	}
	for _, dir := range more {
		dirs = append(dirs, follow(filepath.Join(dir, "*")).dirs...)
	}
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	before := w.events.WatchList()
	for _, dir := range dirs { // also those that are watched: another directory may have their name now
		if err := w.events.Add(dir); err == nil && !slices.Contains(before, dir) {
			again = now.Add(w.options.Debounce)
		}
	}
	for _, dir := range before {
		if !slices.Contains(dirs, dir) {
			_ = w.events.Remove(dir) // it may be gone, and its watch with it
		}
	}
	return again
}

// restart returns a warning for each setting that differs from the start of the program and takes
// effect only at the next start.
func (c *Config) restart(started []setting) yamlcfg.Problems {
	var found yamlcfg.Problems
	for i, now := range c.settings {
		if reflect.DeepEqual(now.value, started[i].value) {
			continue
		}
		p := now.at.Problem("has changed since the start of the program: it takes effect at the next start")
		p.Warning = true
		found = append(found, p)
	}
	return found
}

// alarm is a timer for the earliest of the times that were set.
type alarm struct {
	*time.Timer

	at time.Time // zero = none is set
}

func newAlarm() *alarm {
	a := &alarm{Timer: time.NewTimer(0)}
	a.clear()
	return a
}

func (a *alarm) clear() {
	a.Stop()
	a.at = time.Time{}
}

// set sets a time, unless it is zero or an earlier one is set.
func (a *alarm) set(at time.Time) {
	if first := earliest(a.at, at); !first.Equal(a.at) {
		a.at = first
		a.Reset(time.Until(first))
	}
}
