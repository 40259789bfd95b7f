package config

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io/fs"
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
	// AllFiles reads the files of directories in Rules whatever their names end in.
	AllFiles bool
	// Defaults changes the defaults before the file is read; nil = they stay.
	Defaults func(*Config)

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
	l.cfg.seen = newSeen(l.read)
	return l.result()
}

// Parse is [Load] for a configuration in memory, or for a part of one: it may be without a domain.
// It reads includes from files, relative to the directory of name; with nil files it includes
// nothing.
func Parse(name string, data []byte, files fs.FS) (*Config, error) {
	return parse(name, data, files, Options{})
}

func parse(name string, data []byte, files fs.FS, o Options) (*Config, error) {
	if data == nil {
		data = []byte{}
	}
	return load(files, cmp.Or(name, "ratelimit.yaml"), data, o).result()
}

// LoadBudgets is [Load] for a program that only watches budgets. It reads no keys of reservations:
// their files may be missing, and Config.Reservation has none. The configuration may be without a
// domain. One without a domain, a budget and a webhook is an error, as the file may be incomplete.
func LoadBudgets(path string) (*Config, error) {
	return load(HostFS{}, filepath.ToSlash(path), nil, Options{budgets: true}).result()
}

// ParseBudgets is [LoadBudgets] for a configuration in memory. It reads no file: the key of the
// webhook must be text. It leaves out files that the configuration includes, with a warning.
func ParseBudgets(name string, data []byte) (*Config, error) {
	return parse(name, data, nil, Options{budgets: true})
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

//go:embed ratelimit.yaml
var shipped string

// ShippedName is the name of the shipped configuration in problems and in Config.Files.
const ShippedName = "ratelimit.yaml (built in)"

// Shipped returns a copy of the configuration that comes with the program.
func Shipped() []byte { return []byte(shipped) }

// main returns the configuration called main: its file, or the text that stands for it.
func (r *reader) main(main string, o Options) source {
	switch {
	case main != "":
		return r.file(main)
	case o.Demo:
		return source{name: ShippedName, data: []byte(shipped), mem: true}
	default:
		return source{name: noFile, mem: true}
	}
}

// load reads the configuration called main from its file, or from data if that is not nil.
func load(fsys fs.FS, main string, data []byte, o Options) loaded {
	in := newReader(fsys)
	self := source{name: main, data: data}
	if data == nil {
		self = in.main(main, o)
	}
	own := fsys != nil && main != "" // it may include files
	r := yamlcfg.NewReport()
	f := &file{cfg: defaults()}
	if o.Defaults != nil {
		o.Defaults(f.cfg)
	}
	decode(r, self, "", mainSchema{f.schema()})

	l := loaded{cfg: f.cfg, includes: f.allIncludes(self.name, own, r, o)}
	found := readIncludes(in, self.name, l.includes)
	l.dirs = found.dirs
	l.read = append([]source{self}, found.sources...)
	for _, k := range f.readKeys(&in, self.name, r, o) {
		l.keys = append(l.keys, k.name)
		l.read = append(l.read, k)
	}
	l.hash = hash(l.read)
	l.cfg.Hash = l.hash
	if self.name != noFile {
		l.cfg.Files = []string{self.name}
	}
	for _, s := range found.sources {
		l.cfg.Files = append(l.cfg.Files, s.name)
		f.include(r, s)
	}
	f.partial = !own && len(f.includes) > 0
	f.finish(r)
	if o.budgets && !own {
		for _, i := range f.includes {
			r.Warn(i.at, "is not read: this configuration has no files beside it; budgets in that file are not watched")
		}
	}
	if r.Sound() && len(f.domains) == 0 && f.cfg.XDS.Address == "" && !f.cfg.Limitador && (data == nil || o.budgets) {
		f.checkEmpty(self.name, r, o)
	}
	l.problems = r.All()
	l.cfg.Warnings = r.Warned()
	return l
}

// readKeys reads the keys, and returns their files as sources.
func (f *file) readKeys(in *reader, main string, r *yamlcfg.Report, o Options) (sources []source) {
	if !o.budgets {
		sources = f.cfg.Reservation.read(f.sealing, in, main, r)
	}
	hook, more := f.webhook.read(in, main, r)
	f.cfg.Budgets.Webhook = hook
	return append(sources, more...)
}

// checkEmpty refuses a configuration without domains, unless it has other things to do.
func (f *file) checkEmpty(main string, r *yamlcfg.Report, o Options) {
	b := &f.cfg.Budgets
	switch {
	case !o.budgets && main == noFile && len(o.Rules) > 0:
		f.checkEmptyRules(r, o)
	case !o.budgets:
		r.Fail(yamlcfg.Place{File: main}, "has no domain, nor has a file that it includes: nothing would be limited; the domains stand under domains, or in files under include")
	case len(f.includes) == 0 && b.Set.Len() == 0 && b.Webhook.URL == "":
		r.Fail(yamlcfg.Place{File: main}, "has no domain, no budget and no webhook: there is nothing to watch")
	}
}

// decode decodes a file, if it could be read. Its paths begin with scope.
func decode(r *yamlcfg.Report, s source, scope string, root yamlcfg.Schema) {
	d := yamlcfg.NewDecoder(r, s.name, scope)
	switch {
	case s.err != nil && s.at.File == "":
		r.Fail(yamlcfg.Place{File: s.name}, "%s", unreadable(s.err))
	case s.err != nil:
		r.Fail(s.at, "%s %s", s.name, unreadable(s.err))
	default:
		if n, ok := d.Parse(s.data); ok {
			root.Decode(n)
		}
	}
}

// checkEmptyRules refuses files of the options that have no domain, where there is no other file.
func (f *file) checkEmptyRules(r *yamlcfg.Report, o Options) {
	for _, name := range f.cfg.Files {
		r.Fail(yamlcfg.Place{File: name}, "has no domain: nothing would be limited; it needs domain and rules, or the limits of another program")
	}
	if len(f.cfg.Files) > 0 {
		return
	}
	for _, name := range o.Rules {
		if o.AllFiles {
			r.Fail(yamlcfg.Place{File: name}, "leads to no file: nothing would be limited")
		} else {
			r.Fail(yamlcfg.Place{File: name}, "leads to no file whose name ends in .yaml or .yml: nothing would be limited")
		}
	}
}

// include adds the domains of an included file.
func (f *file) include(r *yamlcfg.Report, s source) {
	var found []domain
	schema := includedSchema{out: &found}
	decode(r, s, s.name+":", &schema)
	for i := range found {
		found[i].spec.Overdraw = s.overdraw
	}
	f.domains = append(f.domains, found...)
	f.cfg.Limitador = f.cfg.Limitador || schema.limits // which may be none
}

// allIncludes returns the includes of the file and of the options, as absolute paths or relative to
// the working directory.
func (f *file) allIncludes(main string, own bool, r *yamlcfg.Report, o Options) []include {
	var all []include
	for _, i := range f.includes {
		if i.path != "" && own {
			i.path = beside(main, i.path)
			all = append(all, i)
		}
	}
	for _, name := range o.Rules {
		if text := checkPattern(name); text != "" {
			r.Fail(yamlcfg.Place{File: name}, "%s", text)
			continue
		}
		all = append(all, include{path: filepath.ToSlash(name), all: o.AllFiles})
	}
	return all
}

// finish completes the configuration and compiles its rules. It compiles rules with mistakes of
// decoding too, as they may have others.
func (f *file) finish(r *yamlcfg.Report) {
	c := f.cfg
	f.limits.static(&c.Static)
	c.Static.Plans = byName(f.plans)
	c.Budgets.Set = f.limits.budgets()
	checkHierarchy(r, f.limits.entities)
	f.checkEntities(r)
	c.Server.check(r)
	specs := f.specs(r)
	if r.Incomplete {
		return
	}
	c.specs = specs
	rules, problems := descriptor.Compile(specs, byName(f.plans))
	decoding := r.Errors
	for _, p := range problems {
		if !echoes(r, p.Path, decoding) {
			r.Fail(r.Find(p.Path), "%s", p.Text)
		}
	}
	if !r.Sound() {
		return
	}
	c.Rules = rules
	for _, p := range rules.Warnings() {
		r.Warn(r.Find(p.Path), "%s", p.Text)
	}
	f.warnings(r, specs)
	c.remember(r)
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
		case twice && f.cfg.Envoyproxy.MergeDomains && mergeTree(specs, &dom.spec):
			continue
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
		if !dom.body {
			dom.spec.Body = f.cfg.Body
		}
		f.useSets(r, &dom.spec)
		f.expandPrices(r, &dom.spec)
		if !dom.says {
			f.cfg.ruleless[name] = true
		}
		specs = append(specs, dom.spec)
	}
	return specs
}

// mergeTree adds the descriptors of a domain to those of the same domain in an earlier file. It reports whether there
// is one with descriptors.
func mergeTree(specs []descriptor.DomainSpec, more *descriptor.DomainSpec) bool {
	i := slices.IndexFunc(specs, func(s descriptor.DomainSpec) bool { return s.Domain == more.Domain })
	if i < 0 || specs[i].Tree == nil || more.Tree == nil {
		return false
	}
	specs[i].Tree = append(specs[i].Tree, more.Tree...)
	return true
}

// useSets puts sets in the place of their names.
func (f *file) useSets(r *yamlcfg.Report, spec *descriptor.DomainSpec) {
	for i := range spec.Rules {
		for j := range spec.Rules[i].Match {
			m := &spec.Rules[i].Match[j]
			if m.Set == "" {
				continue
			}
			at := slices.IndexFunc(f.sets, func(s yamlcfg.Entry[descriptor.MatchSpec]) bool { return s.Name == m.Set })
			if at < 0 {
				names := make([]string, 0, len(f.sets))
				for _, s := range f.sets {
					names = append(names, s.Name)
				}
				r.Fail(r.Find(yamlcfg.Join(m.Path, "set")), "%q is not a name under sets%s", m.Set, yamlcfg.DidYouMean(m.Set, names))
				continue
			}
			of := f.sets[at].Value
			m.Value, m.Values, m.Regex, m.CIDR = of.Value, of.Values, of.Regex, of.CIDR
		}
	}
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
