package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Options are what a configuration is loaded and watched with beside its file.
// The zero value is useful.
type Options struct {
	// Rules are files, patterns and directories with more domains, like those
	// that the file includes; relative to the working directory.
	Rules []string

	// Current is, for [Watch], the configuration in force, as Load returned it or
	// changed since: where the files differ from it already, the new one is
	// delivered at once. Without it, what Watch finds first is taken as in force.
	Current *Config
	// Debounce is, for Watch, the time from the first sign of a change until the
	// files are read, so that what is written in one go is read in one go; default 100ms.
	Debounce time.Duration
	// Poll is, for Watch, how often the contents are compared, in case a change
	// gives no sign, as on network file systems; default 3s, within the 5 seconds that a
	// changed limit may take.
	Poll time.Duration
}

// Load reads a configuration and what it includes. With path "" it is the
// shipped one, which then includes nothing. The error is [Problems]: all that is
// wrong, in all files.
func Load(path string, o Options) (*Config, error) {
	l := load(host{}, filepath.ToSlash(path), nil, o)
	return l.result()
}

// Parse is [Load] for a configuration that is in memory. Its includes are found
// in files, relative to the directory of name; with nil files it includes nothing.
func Parse(name string, data []byte, files fs.FS) (*Config, error) {
	if data == nil {
		data = []byte{}
	}
	l := load(files, cmp.Or(name, "ratelimit.yaml"), data, Options{})
	return l.result()
}

// loaded is what became of one attempt to load.
type loaded struct {
	cfg      *Config
	problems Problems // not empty: cfg cannot be used

	includes []include // all that was to be read beside the file itself
	files    *files
	hash     string // of what was read, and of why something was not
}

func (l loaded) result() (*Config, error) {
	if len(l.problems) > 0 {
		return nil, l.problems
	}
	return l.cfg, nil
}

// load reads the configuration called main, whose text is data unless that is nil.
func load(fsys fs.FS, main string, data []byte, o Options) loaded {
	if main == "" {
		main, data = ShippedName, []byte(shipped)
	}
	self := readMain(fsys, main, data)
	r := newReport()
	f := &file{cfg: defaults()}
	f.reservation.ttl = &f.cfg.Reservation.TTL
	d := &decoder{report: r, file: main}
	d.source(self, f.schema())

	l := loaded{cfg: f.cfg, includes: f.allIncludes(main, fsys != nil && main != ShippedName, r, o)}
	l.files = readIncludes(fsys, main, l.includes)
	keys := f.reservation.read(fsys, main, &f.cfg.Reservation, r)
	l.hash = hash(self, slices.Concat(l.files.sources, keys))
	l.cfg.Hash = l.hash
	l.cfg.Files = []string{main}
	for _, s := range l.files.sources {
		l.cfg.Files = append(l.cfg.Files, s.name)
		f.domains = append(f.domains, included(r, s)...)
	}
	f.finish(d)
	l.problems = r.all()
	r.warnings.sort()
	l.cfg.Warnings = r.warnings
	return l
}

// readMain reads the configuration itself, unless its text is there already.
func readMain(fsys fs.FS, main string, data []byte) source {
	s := source{name: main, data: data}
	if data == nil {
		s.data, s.err = readFile(fsys, main)
	}
	return s
}

// source decodes a file, if it could be read.
func (d *decoder) source(s source, root schema) {
	d.places[d.scope] = place{file: s.name}
	if s.err != nil {
		at := s.at
		if at.file == "" {
			d.fail(place{file: s.name}, "%s", unreadable(s.err))
			return
		}
		d.fail(at, "%s %s", s.name, unreadable(s.err))
		return
	}
	if v, ok := d.parse(s.data); ok {
		root.decode(d, v)
	}
}

// allIncludes returns what the file includes, by paths that need no directory to
// start from, and what the options add.
func (f *file) allIncludes(main string, own bool, r *report, o Options) []include {
	var all []include
	for _, i := range f.includes {
		if i.path != "" && own {
			if !filepath.IsAbs(i.path) {
				i.path = path.Join(path.Dir(main), filepath.ToSlash(i.path))
			}
			all = append(all, i)
		}
	}
	for _, name := range o.Rules {
		if text := checkPattern(name); text != "" {
			r.fail(place{file: name}, "%s", text)
			continue
		}
		all = append(all, include{path: filepath.ToSlash(name)})
	}
	return all
}

// finish puts the configuration together and compiles its rules, also those that
// were decoded with a mistake: they may have others.
func (f *file) finish(d *decoder) {
	c := f.cfg
	f.limits.static(&c.Static)
	checkHierarchy(d, f.limits.entities)
	specs := f.specs(d.report)
	if d.incomplete {
		return
	}
	rules, problems := descriptor.Compile(specs, byName(f.plans))
	decoding := d.errors
	for _, p := range problems {
		if !d.echoes(p.Path, decoding) {
			d.fail(d.find(p.Path), "%s", p.Text)
		}
	}
	if len(d.errors) > 0 {
		return
	}
	c.Rules = rules
	for _, p := range rules.Warnings() {
		d.warn(d.find(p.Path), "%s", p.Text)
	}
	f.warnings(d.report, specs)
	c.remember(d.report)
}

// specs returns the domains to compile, each once.
func (f *file) specs(r *report) []descriptor.DomainSpec {
	first := make(map[string]place, len(f.domains))
	specs := make([]descriptor.DomainSpec, 0, len(f.domains))
	for _, dom := range f.domains {
		name := dom.spec.Domain
		at, twice := first[name]
		switch {
		case name == "": // reported; the mistakes in its rules are not yet
			dom.spec.Domain = dom.spec.Path
		case twice:
			r.fail(dom.at, "the domain %q stands at %s:%d already: give it once, with the rules of both", name, at.file, at.line)
			dom.spec.Domain = dom.spec.Path
		default:
			first[name] = dom.at
		}
		if dom.spec.Namespace == "" {
			dom.spec.Namespace = limiter.DefaultNamespace
		}
		dom.spec.DenyUnknown = f.cfg.DenyUnknown
		if dom.deny != nil {
			dom.spec.DenyUnknown = *dom.deny
		}
		specs = append(specs, dom.spec)
	}
	return specs
}

// hash identifies what was read.
func hash(main source, more []source) string {
	h := sha256.New()
	for _, s := range append([]source{main}, more...) {
		h.Write(fmt.Appendf(nil, "%q %d %v\n", s.name, len(s.data), s.err))
		h.Write(s.data)
	}
	return hex.EncodeToString(h.Sum(nil))
}
