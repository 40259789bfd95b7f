package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

const maxDepth = 32 // bounds how deep directories are searched

// include is one item of the include list, or one --rules.
type include struct {
	path     string // as written
	at       yamlcfg.Place
	overdraw descriptor.Overdraw // of the descriptors of files of envoyproxy/ratelimit
	all      bool                // of a directory also files whose names end otherwise
}

func (i *include) schema() yamlcfg.Schema {
	path := yamlcfg.Scalar{Of: yamlcfg.Shape{Type: []string{"string"}, Pattern: "."}, Read: func(n yamlcfg.Node) {
		yamlcfg.Name(&i.path).Decode(n)
		i.at = n.Where()
		if text := checkPattern(i.path); text != "" {
			n.Failf("%s", text)
			i.path = ""
		}
	}}
	return yamlcfg.Object{Title: "include", Needs: []string{"path"}, Missing: "needs path, a file, a pattern or a directory", Keys: []yamlcfg.Key{
		key("path", "file, pattern or directory, relative to this file", path), key("overdraw", "[charges](#charges-of-such-files) in files of envoyproxy/ratelimit", overdraw(&i.overdraw)),
		key("all_files", "reads files of a directory with any name", yamlcfg.Bool(&i.all)),
	}}
}

// checkPattern returns the mistake in a pattern; "" when there is none.
func checkPattern(pattern string) string {
	if strings.Contains(pattern, "**") {
		return "** is not supported: name a directory, and all files below it are read"
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Sprintf("%q is not a valid pattern: a bracket is not closed", pattern)
	}
	return ""
}

// files finds and reads the includes of a configuration.
type files struct {
	reader

	dirs []string // every directory that was searched

	seen    map[string]bool
	sources []source
}

// readIncludes reads the files that the patterns name, each once, in the order of the patterns and
// then of names. It leaves out the file main.
func readIncludes(r reader, main string, includes []include) *files {
	f := &files{reader: r, seen: map[string]bool{path.Clean(main): true}}
	for _, i := range includes {
		switch {
		case i.path == "":
		case isPattern(i.path):
			f.glob(i)
		default:
			f.named(i)
		}
	}
	return f
}

func isPattern(name string) bool { return strings.ContainsAny(name, `*?[\`) }

// named reads a file, or all files below a directory.
func (f *files) named(i include) {
	info, err := fs.Stat(f.fsys, i.path)
	switch {
	case err != nil:
		f.dirs = append(f.dirs, path.Dir(i.path))
		f.sources = append(f.sources, source{name: i.path, err: err, at: i.at})
	case info.IsDir():
		f.directory(i, i.path, nil)
	default:
		f.read(i.path, i)
	}
}

// glob reads the files that match. A pattern that matches none is no mistake.
func (f *files) glob(i include) {
	base := i.path
	for isPattern(base) {
		base = path.Dir(base)
	}
	f.dirs = append(f.dirs, base)
	matches, err := fs.Glob(f.fsys, i.path)
	if err != nil {
		f.sources = append(f.sources, source{name: i.path, err: err, at: i.at})
	}
	slices.Sort(matches)
	for _, name := range matches {
		info, err := fs.Stat(f.fsys, name)
		if (i.all || isYAML(name)) && !hidden(i.path, name) && (err != nil || !info.IsDir()) {
			f.read(name, i)
		}
	}
}

// hidden reports whether a pattern matches a name that begins with a dot and the pattern does not
// begin with one.
func hidden(pattern, name string) bool {
	patterns, names := strings.Split(pattern, "/"), strings.Split(name, "/")
	for k := 1; k <= min(len(patterns), len(names)); k++ {
		part := names[len(names)-k]
		if strings.HasPrefix(part, ".") && !strings.HasPrefix(patterns[len(patterns)-k], ".") {
			return true
		}
	}
	return false
}

func isYAML(name string) bool {
	ext := path.Ext(name)
	return ext == ".yaml" || ext == ".yml"
}

// directory reads the files below a directory in the order of names, without those whose name
// begins with a dot. It follows symbolic links, but not in circles.
func (f *files) directory(i include, dir string, above []fs.FileInfo) {
	info, err := fs.Stat(f.fsys, dir)
	entries, readErr := fs.ReadDir(f.fsys, dir)
	if err = errors.Join(err, readErr); err != nil {
		f.sources = append(f.sources, source{name: dir, err: err, at: i.at})
		return
	}
	circle := slices.ContainsFunc(above, func(up fs.FileInfo) bool { return os.SameFile(up, info) })
	if circle || len(above) == maxDepth || f.full(dir, i.at) {
		return
	}
	f.dirs = append(f.dirs, dir)
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		switch entry, err := fs.Stat(f.fsys, name); {
		case err == nil && entry.IsDir():
			f.directory(i, name, append(above, info))
		case i.all || isYAML(name):
			f.read(name, i)
		}
	}
}

// read reads a file once, even if several patterns name it.
func (f *files) read(name string, i include) {
	if f.seen[path.Clean(name)] || f.full(name, i.at) {
		return
	}
	f.seen[path.Clean(name)] = true
	s := f.file(name)
	s.at, s.overdraw = i.at, i.overdraw
	f.dirs = append(f.dirs, path.Dir(name))
	f.sources = append(f.sources, s)
}

// full reports whether there are too many files and directories. It reports the problem once.
func (f *files) full(name string, at yamlcfg.Place) bool {
	if len(f.dirs) < maxFiles {
		return false
	}
	if last := len(f.sources) - 1; last < 0 || !errors.Is(f.sources[last].err, errTooMany) {
		f.sources = append(f.sources, source{name: name, err: errTooMany, at: at})
	}
	return true
}
