package config

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Watch calls apply with every new configuration, until ctx is done; then it
// returns nil. A change to anything that was read counts: the file itself, what
// it includes, files that are new in a directory or match a pattern, and the
// symbolic links on the way, such as those of a Kubernetes ConfigMap.
//
// It is all or nothing: when something is wrong, apply gets no Config and the
// error that [Load] returns, once, and what is in force should stay so. When the
// files are good again it gets a Config, even the one before.
//
// What differs from the configuration that the program started with
// (Options.Current) and takes effect only at the next start is among the Warnings.
//
// apply is called by the goroutine of Watch, one call after another. Where the
// system cannot watch directories, the comparison of contents does it alone.
func Watch(ctx context.Context, path string, o Options, apply func(*Config, error)) error {
	w := &watcher{fsys: host{}, main: filepath.ToSlash(path), options: o, apply: apply}
	if o.Current != nil {
		w.last, w.started = o.Current.Hash, &o.Current.origin
	}
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
	main    string
	options Options
	apply   func(*Config, error)

	events   *fsnotify.Watcher // nil: there are none
	includes []include
	last     string  // hash of what was last delivered, good or not; "" = nothing was yet
	started  *origin // what the program started with; nil = not known yet
}

func (w *watcher) run(ctx context.Context) {
	poll := time.NewTicker(cmp.Or(w.options.Poll, 3*time.Second))
	defer poll.Stop()
	var changed <-chan fsnotify.Event
	var trouble <-chan error
	if w.events != nil {
		changed, trouble = w.events.Events, w.events.Errors
	}
	debounce := cmp.Or(w.options.Debounce, 100*time.Millisecond)
	var due <-chan time.Time // nil unless something changed
	if w.load() {
		due = time.After(debounce)
	}
	for {
		again := true
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-trouble: //nolint:errcheck // an error says that events were lost, so there may be a change
		case <-due:
			due = nil
			again = w.reload()
		case <-poll.C:
			again = w.reload()
		}
		if again && due == nil {
			due = time.After(debounce)
		}
	}
}

// reload loads the configuration if what it was read from is not the same. Like
// load it reports whether to look again.
func (w *watcher) reload() bool {
	self := w.readMain()
	files := readIncludes(w.fsys, w.name(), w.includes)
	if hash(self, files.sources) == w.last {
		return w.follow(files)
	}
	return w.load()
}

// load delivers the configuration if it is not the one before. It reports whether
// directories are watched that were not: something may have changed in them in
// the meantime.
func (w *watcher) load() bool {
	l := load(w.fsys, w.main, nil, w.options)
	w.includes = l.includes
	again := w.follow(l.files)
	first := w.last == ""
	if l.hash == w.last {
		return again
	}
	w.last = l.hash
	cfg, err := l.result()
	if err == nil && w.started == nil {
		w.started = &cfg.origin
	}
	if err == nil && first {
		return again // it is what the program runs with
	}
	if err == nil {
		cfg.Warnings = append(cfg.Warnings, cfg.restart(w.started)...)
		cfg.Warnings.sort()
	}
	w.apply(cfg, err)
	return again
}

func (w *watcher) name() string { return cmp.Or(w.main, ShippedName) }

func (w *watcher) readMain() source {
	if w.main == "" {
		return readMain(w.fsys, ShippedName, Shipped())
	}
	return readMain(w.fsys, w.main, nil)
}

// follow watches the directories that the files were found in, and no others.
func (w *watcher) follow(f *files) (more bool) {
	if w.events == nil {
		return false
	}
	var dirs []string
	if w.main != "" {
		dirs = followLinks(dirs, w.main)
	}
	for _, s := range f.sources {
		dirs = followLinks(dirs, s.name)
	}
	for _, dir := range f.dirs {
		dirs = followLinks(dirs, filepath.Join(dir, "*"))
	}
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	before := w.events.WatchList()
	for _, dir := range dirs { // also those that are watched: another directory may have their name now
		if err := w.events.Add(dir); err == nil && !slices.Contains(before, dir) {
			more = true
		}
	}
	for _, dir := range before {
		if !slices.Contains(dirs, dir) {
			_ = w.events.Remove(dir) // it may be gone, and its watch with it
		}
	}
	return more
}

// maxLinks bounds how many symbolic links are followed on the way to a file.
const maxLinks = 40

// followLinks appends the directories in which a change can change what a name
// leads to: its own, and that of every symbolic link on the way.
func followLinks(dirs []string, name string) []string {
	name, err := filepath.Abs(name)
	if err != nil {
		return dirs
	}
	for range maxLinks {
		link := firstLink(name)
		if link == "" {
			return append(dirs, existing(filepath.Dir(name)))
		}
		target, err := os.Readlink(link)
		if err != nil {
			return append(dirs, filepath.Dir(link))
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(link), target)
		}
		dirs = append(dirs, filepath.Dir(link))
		name = filepath.Join(target, name[len(link):])
	}
	return dirs
}

// firstLink returns the first symbolic link on the way to an absolute name, "" for none.
func firstLink(name string) string {
	for i := 1; i <= len(name); i++ {
		if i < len(name) && !os.IsPathSeparator(name[i]) {
			continue
		}
		info, err := os.Lstat(name[:i])
		if err != nil {
			return ""
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return name[:i]
		}
	}
	return ""
}

// existing returns a directory, or the nearest above it that exists.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
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
