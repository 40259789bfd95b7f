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

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Options say how a configuration is loaded and watched. The zero value is useful.
type Options struct {
	// Rules are files, patterns and directories with more domains, as in the include list of the
	// file. They are relative to the working directory.
	Rules []string
	// Demo loads the configuration that comes with the program where no file is named, to try
	// things out. That configuration includes only Rules.
	Demo bool
	// HTTPAddress replaces the default of server.http.address; "" = the default stays.
	HTTPAddress string

	// Current is, for [Watch], the configuration in force, as Load returned it or changed since.
	// Where the files differ from it already, Watch delivers the new one at once. nil = the
	// configuration that Watch reads first counts as in force.
	Current *Config
	// Reload asks Watch to read the files at once, and to deliver them even if they have not
	// changed; nil = never.
	Reload <-chan struct{}
	// Debounce is, for Watch, the time from the first sign of a change until the files are read.
	// Changes within this time are read together. Default 100 ms.
	Debounce time.Duration
	// Still is, for Watch, how long a file that is written in place must stay unchanged before it
	// is read; default 2 s.
	Still time.Duration
	// Gone is, for Watch, how long a domain in force must be missing from the files before it is
	// taken out of force; default 5 s. At least two reads must miss it.
	Gone time.Duration
	// Poll is, for Watch, how often the contents are compared, in case a change gives no sign, as
	// on network file systems; default 3 s.
	Poll time.Duration

	budgets bool // reads what LoadBudgets needs, and no keys of reservations
}

// Load reads a configuration and the files that it includes. With path "" there is no file: the
// domains are those of Options.Rules, with the defaults or Options.Demo. The error is [yamlcfg.Problems],
// with all mistakes in all files. A configuration without a domain would limit nothing, so it is an
// error too.
func Load(path string, o Options) (*Config, error) {
	l := load(HostFS{}, filepath.ToSlash(path), nil, o)
	l.cfg.origin.remember(l.read)
	return l.result()
}

// Parse is [Load] for a configuration in memory, or for a part of one: it may be without a domain.
// It reads includes from files, relative to the directory of name; with nil files it includes
// nothing.
func Parse(name string, data []byte, files fs.FS) (*Config, error) {
	if data == nil {
		data = []byte{}
	}
	l := load(files, cmp.Or(name, "ratelimit.yaml"), data, Options{})
	return l.result()
}

// loaded is the result of one attempt to load.
type loaded struct {
	cfg      *Config
	problems yamlcfg.Problems // not empty: cfg cannot be used

	includes []include // all includes, read or not
	keys     []string  // the names of files with keys
	read     []source  // everything that was read, or could not be
	dirs     []string  // every directory that was searched
	hash     string    // of the text that was read, and of the reasons where none could be
}

func (l loaded) result() (*Config, error) {
	if len(l.problems) > 0 {
		return nil, l.problems
	}
	return l.cfg, nil
}

// noFile is the name that problems have for a configuration without a file.
const noFile = "(no file)"

// begin returns the name of the configuration called main, and its text if it is not in a file.
func (o Options) begin(main string) (name string, data []byte) {
	switch {
	case main != "":
		return main, nil
	case o.Demo:
		return ShippedName, []byte(shipped)
	default:
		return noFile, []byte{}
	}
}

// load reads the configuration called main from its file, or from data if that is not nil.
func load(fsys fs.FS, main string, data []byte, o Options) loaded {
	inFile := data == nil // otherwise it may be a part of a configuration
	own := fsys != nil && main != ""
	if inFile {
		main, data = o.begin(main)
	}
	in := newReader(fsys)
	self := in.main(main, data)
	r := yamlcfg.NewReport()
	f := newFile(o)
	d := yamlcfg.NewDecoder(r, main, "")
	decode(d, self, mainSchema{f.schema()})

	l := loaded{cfg: f.cfg, includes: f.allIncludes(main, own, r, o)}
	found := readIncludes(in, main, l.includes)
	var keys []source
	if !o.budgets {
		keys = f.reservation.read(&in, main, &f.cfg.Reservation, r)
	}
	keys = append(keys, f.budgets.read(&in, main, &f.cfg.Budgets, r)...)
	for _, k := range keys {
		l.keys = append(l.keys, k.name)
	}
	l.dirs = found.dirs
	l.read = slices.Concat([]source{self}, found.sources, keys)
	l.hash = hash(l.read)
	l.cfg.Hash = l.hash
	if main != noFile {
		l.cfg.Files = []string{main}
	}
	for _, s := range found.sources {
		l.cfg.Files = append(l.cfg.Files, s.name)
		f.domains = append(f.domains, included(r, s)...)
	}
	f.finish(d)
	if o.budgets {
		f.checkOnlyBudgets(main, own, r)
	}
	if inFile && !o.budgets && r.Sound() && len(f.domains) == 0 {
		r.Fail(yamlcfg.Place{File: main}, "has no domain, nor has a file that it includes: nothing would be limited; the domains stand under domains, or in files under include")
	}
	l.problems = r.All()
	l.cfg.Warnings = r.Warned()
	return l
}

// decode decodes a file, if it could be read.
func decode(d *yamlcfg.Decoder, s source, root yamlcfg.Schema) {
	if s.err != nil {
		at := s.at
		if at.File == "" {
			d.Fail(yamlcfg.Place{File: s.name}, "%s", unreadable(s.err))
			return
		}
		d.Fail(at, "%s %s", s.name, unreadable(s.err))
		return
	}
	if v, ok := d.Parse(s.data); ok {
		root.Decode(d, v)
	}
}

// allIncludes returns the includes of the file and of the options, as absolute paths or relative to
// the working directory.
func (f *file) allIncludes(main string, own bool, r *yamlcfg.Report, o Options) []include {
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
			r.Fail(yamlcfg.Place{File: name}, "%s", text)
			continue
		}
		all = append(all, include{path: filepath.ToSlash(name)})
	}
	return all
}

// finish completes the configuration and compiles its rules. It compiles rules with mistakes of
// decoding too, as they may have others.
func (f *file) finish(d *yamlcfg.Decoder) {
	c := f.cfg
	f.limits.static(&c.Static)
	c.Budgets.Set = f.limits.budgets()
	checkHierarchy(d, f.limits.entities)
	f.checkListeners(d)
	specs := f.specs(d.Report)
	if d.Incomplete {
		return
	}
	rules, problems := descriptor.Compile(specs, byName(f.plans))
	decoding := d.Errors
	for _, p := range problems {
		if !echoes(d.Report, p.Path, decoding) {
			d.Fail(d.Find(p.Path), "%s", p.Text)
		}
	}
	if !d.Sound() {
		return
	}
	c.Rules = rules
	for _, p := range rules.Warnings() {
		d.Warn(d.Find(p.Path), "%s", p.Text)
	}
	f.warnings(d.Report, specs)
	c.remember(d.Report)
}

// specs returns the domains to compile, each once.
func (f *file) specs(r *yamlcfg.Report) []descriptor.DomainSpec {
	first := make(map[string]yamlcfg.Place, len(f.domains))
	specs := make([]descriptor.DomainSpec, 0, len(f.domains))
	f.cfg.ruleless = make(map[string]bool)
	for _, dom := range f.domains {
		name := dom.spec.Domain
		at, twice := first[name]
		switch {
		case name == "": // reported; the mistakes in its rules are not yet
			dom.spec.Domain = dom.spec.Path
		case twice:
			r.Fail(dom.at, "the domain %q stands at %s:%d already: give it once, with the rules of both", name, at.File, at.Line)
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
		if !dom.says {
			f.cfg.ruleless[name] = true
		}
		specs = append(specs, dom.spec)
	}
	return specs
}

// hash identifies the contents of files.
func hash(read []source) string {
	h := sha256.New()
	for _, s := range read {
		h.Write(fmt.Appendf(nil, "%q %d %v\n", s.name, len(s.data), s.err))
		h.Write(s.data)
	}
	return hex.EncodeToString(h.Sum(nil))
}
