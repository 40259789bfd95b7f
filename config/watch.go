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

	"github.com/ratelimit/ratelimit/internal/regular"
)

// Watch calls apply with every new configuration, until ctx is done; then it
// returns nil. A change to anything that was read counts: the file itself, what
// it includes, files that are new in a directory or match a pattern, and the
// symbolic links on the way, such as those of a Kubernetes ConfigMap.
//
// A file that is moved into its place is read at once, and so is everything behind
// a symbolic link that is swapped. A file that is written in place, or is missing, is
// read when it has been as it is for Options.Still.
//
// It is all or nothing: when something is wrong, apply gets no Config and the
// error that [Load] returns, once, and what is in force should stay so. When the
// files are good again it gets a Config, even the one before. Files that lack a domain
// in force, or all its rules, are wrong in this sense for Options.Gone, with a
// [GoneError]; then they are taken as they are. Files with a domain in force that has no list of
// rules any more are wrong for as long as they are so, with an [EmptiedError].
//
// What differs from the configuration that the program started with
// (Options.Current) and takes effect only at the next start is among the Warnings.
//
// apply is called by the goroutine of Watch, one call after another. Where the
// system cannot watch directories, the comparison of contents does it alone.
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

	events   *fsnotify.Watcher // nil: there are none
	includes []include
	keys     []string
	last     string  // hash of what was last delivered, good or not; "" = nothing was yet
	seen     origin  // the files that were read for it
	started  *origin // what the program started with; nil = not known yet
	settling settling
	missing  missing
}

func newWatcher(path string, o Options, apply func(*Config, error)) *watcher {
	o.Debounce = cmp.Or(o.Debounce, 100*time.Millisecond)
	o.Still = cmp.Or(o.Still, 2*time.Second)
	o.Gone = cmp.Or(o.Gone, 5*time.Second)
	o.Poll = cmp.Or(o.Poll, 3*time.Second)
	w := &watcher{fsys: regular.Host{}, path: path, options: o, apply: apply}
	if c := o.Current; c != nil {
		w.last, w.seen, w.started = c.Hash, c.origin, &c.origin
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
	var due alarm
	defer due.stop()
	due.set(w.load(time.Now(), false))
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-changed:
			w.settling.tell(e)
			due.set(time.Now().Add(w.options.Debounce))
		case <-trouble: //nolint:errcheck // an error says that events were lost, so there may be a change
			due.set(time.Now().Add(w.options.Debounce))
		case <-w.options.Reload:
			due.stop()
			due.set(w.load(time.Now(), true))
		case <-due.C():
			due.stop()
			due.set(w.reload(time.Now()))
		case <-poll.C:
			due.set(w.reload(time.Now()))
		}
	}
}

// alarm is a timer that goes off at the earliest of the times that were set.
type alarm struct {
	at    time.Time
	timer *time.Timer
}

// C is nil while nothing is set.
func (a *alarm) C() <-chan time.Time {
	if a.timer == nil {
		return nil
	}
	return a.timer.C
}

// set sets a time, unless it is zero or later than the one that is set.
func (a *alarm) set(at time.Time) {
	if at.IsZero() || a.timer != nil && !at.Before(a.at) {
		return
	}
	a.stop()
	a.at, a.timer = at, time.NewTimer(time.Until(at))
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}

// reload loads the configuration if what it was read from is not the same. Like
// load it returns when to look again.
func (w *watcher) reload(now time.Time) time.Time {
	in := newReader(w.fsys)
	main, data := w.options.begin(w.path)
	self := in.main(main, data)
	found := readIncludes(in, main, w.includes)
	read := slices.Concat([]source{self}, found.sources)
	for _, name := range w.keys {
		read = append(read, in.key(name))
	}
	if hash(read) == w.last && len(w.missing.since) == 0 {
		w.settling.waiting = nil
		return w.again(now, w.watch(read, found.dirs))
	}
	return w.load(now, false)
}

// load delivers the configuration if it is not the one before, and is complete. It
// returns when to look again: directories are watched that were not, and something may
// have changed in them in the meantime; or a file is being written, or a domain is gone.
// When it is asked for it delivers the files as they are.
func (w *watcher) load(now time.Time, asked bool) time.Time {
	l := load(w.fsys, w.path, nil, w.options)
	w.includes, w.keys = l.includes, l.keys
	again := w.again(now, w.watch(l.read, l.dirs))
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
	w.seen.remember(l.read)
	w.deliver(cfg, err, first && !asked)
	return again
}

// lack looks for domains in force that a configuration lacks. While they must stay it
// puts a GoneError or an EmptiedError in place of a nil error, and returns when to look again, and whether
// to say so.
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
	gone, due := w.missing.look(now, w.options.Gone, cfg)
	if due.IsZero() {
		return time.Time{}, true
	}
	*err = &GoneError{Domains: gone, After: w.options.Gone}
	return due, isNew
}

// deliver hands a configuration over, or why there is none.
func (w *watcher) deliver(cfg *Config, err error, first bool) {
	if err != nil {
		w.apply(nil, err)
		return
	}
	w.missing.use(cfg)
	if w.started == nil {
		w.started = &cfg.origin
	}
	if first {
		return // the program runs with it
	}
	cfg.Warnings = append(cfg.Warnings, cfg.restart(w.started)...)
	cfg.Warnings.sort()
	w.apply(cfg, nil)
}

func (w *watcher) again(now time.Time, more bool) time.Time {
	if !more {
		return time.Time{}
	}
	return now.Add(w.options.Debounce)
}

// earliest returns the earlier of two times, of which zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// watch watches the directories that the files were found in, and no others. It reports
// whether there are some that were not watched before.
func (w *watcher) watch(read []source, more []string) (isNew bool) {
	if w.events == nil {
		return false
	}
	var dirs []string
	for _, s := range read {
		if s.name != ShippedName && s.name != noFile {
			dirs = append(dirs, follow(s.name).dirs...)
		}
	}
	for _, dir := range more {
		dirs = append(dirs, follow(filepath.Join(dir, "*")).dirs...)
	}
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	before := w.events.WatchList()
	for _, dir := range dirs { // also those that are watched: another directory may have their name now
		if err := w.events.Add(dir); err == nil && !slices.Contains(before, dir) {
			isNew = true
		}
	}
	for _, dir := range before {
		if !slices.Contains(dirs, dir) {
			_ = w.events.Remove(dir) // it may be gone, and its watch with it
		}
	}
	return isNew
}

// restart warns about what differs from what the program started with and takes
// effect only at the next start.
func (c *Config) restart(started *origin) Problems {
	var found Problems
	for i, now := range c.origin.settings {
		if reflect.DeepEqual(now.value, started.settings[i].value) {
			continue
		}
		p := now.at.problem("differs from what the program started with: it needs a restart to take effect")
		p.Warning = true
		found = append(found, p)
	}
	return found
}
