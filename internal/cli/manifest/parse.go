package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Manifest has the records that files want in one namespace.
type Manifest struct {
	Name      string // "" = it owns no record
	Namespace string // "" = the files do not say
	Records   []Record
}

// Source is a file that was read.
type Source struct {
	Name string // for problems
	Data []byte
}

// maxName is the longest name of a manifest, in bytes.
const maxName = 63

// Parse returns the manifest that files are together, or every mistake in them.
func Parse(sources []Source) (*Manifest, yamlcfg.Problems) {
	p := parser{seen: make(map[limiter.Ref]string)}
	var problems yamlcfg.Problems
	for _, s := range sources {
		p.file = s.Name
		data := s.Data
		if json.Valid(data) {
			data = yamlcfg.FromJSON(data)
		}
		problems = append(problems, yamlcfg.Documents(s.Name, data, p.document)...)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	problems = p.hierarchy()
	if len(problems) > 0 {
		return nil, problems
	}
	slices.SortFunc(p.Records, func(a, b Record) int { return order(a.Ref, b.Ref) })
	return &p.Manifest, nil
}

// parser collects the records of all files.
type parser struct {
	Manifest

	file string                 // that is read
	seen map[limiter.Ref]string // where each record stands
}

// document reads one document: keys of a manifest, a record as get prints it, or a list of
// them.
func (p *parser) document(n yamlcfg.Node) {
	switch {
	case n.IsList():
		n.Items(p.item)
	case n.Has("id", "level", "entity", "resource", "parent"):
		p.item(n)
	default:
		n.Fields(
			yamlcfg.Field{Name: "manifest", Read: func(n yamlcfg.Node) { p.header(n, &p.Name) }},
			yamlcfg.Field{Name: "namespace", Read: func(n yamlcfg.Node) { p.header(n, &p.Namespace) }},
			yamlcfg.Field{Name: "limits", Read: p.sections},
			yamlcfg.Field{Name: "items", Read: func(n yamlcfg.Node) { n.Items(p.item) }},
		)
	}
}

// header reads a name that every document has alike, or not at all.
func (p *parser) header(n yamlcfg.Node, out *string) {
	var name string
	if yamlcfg.Name(&name).Decode(n); name == "" {
		return
	}
	switch {
	case *out != "" && *out != name:
		n.Failf("is %.100q; another document says %.100q, and one apply is of one", name, *out)
	case out == &p.Name && (len(name) > maxName || strings.Trim(name, nameLetters) != ""):
		n.Failf("must be 1 to %d letters, digits, hyphens, dots and underscores, not %.100q", maxName, name)
	default:
		*out = name
	}
}

const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"

// add adds a record that stands at n.
func (p *parser) add(n yamlcfg.Node, r Record) {
	if at, twice := p.seen[r.Ref]; twice {
		n.Failf("%s stands at %s already: remove one", Subject(r.Ref), at)
		return
	}
	if IsInventory(r.Ref.Entity) {
		n.Failf("an ID that begins with %s is for inventories of manifests", Root)
		return
	}
	p.seen[r.Ref] = n.At()
	r.file, r.line = p.file, n.Line()
	p.Records = append(p.Records, r)
}

// sections reads limits by level, as a configuration has them.
func (p *parser) sections(n yamlcfg.Node) {
	n.Fields(
		yamlcfg.Field{Name: "system", Read: func(n yamlcfg.Node) { p.limits(n, limiter.SystemLimitsRef()) }},
		yamlcfg.Field{Name: "resources", Read: func(n yamlcfg.Node) {
			n.Entries("a resource", func(name string, n yamlcfg.Node) { p.limits(n, limiter.ResourceLimitsRef(name)) })
		}},
		yamlcfg.Field{Name: "entities", Read: func(n yamlcfg.Node) { n.Entries("an entity", p.entity) }},
	)
}

// limits reads the limits of one level.
func (p *parser) limits(n yamlcfg.Node, ref limiter.Ref) {
	var limits *limiter.Limits
	var budgets *limiter.Budgets
	before := n.Failures()
	config.ReadLimits(n, &limits, &budgets)
	switch {
	case n.Failures() > before:
		return
	case limits.Len() == 0:
		n.Failf("has no limit: give one, such as rpm: 600/minute, or leave it out")
		return
	}
	p.add(n, levelRecord(ref, limits, budgets, ""))
}

func levelRecord(ref limiter.Ref, limits *limiter.Limits, budgets *limiter.Budgets, policy string) Record {
	entity, resource := api.Name(ref.Entity), api.Name(ref.Resource)
	l := &api.Limits{Level: api.LevelSystem, Limits: controlapi.LimitsJSON(limits, budgets), OnUnavailable: policy}
	switch ref.Kind {
	case limiter.RefResourceLimits:
		l.Level, l.Resource = api.LevelResource, &resource
	case limiter.RefEntityLimits:
		l.Level, l.Entity, l.Resource = api.LevelEntity, &entity, &resource
	case limiter.RefSystemLimits, limiter.RefEntity:
	}
	return Record{Ref: ref, Limits: l}
}

// entity reads an entity and its limits.
func (p *parser) entity(id string, n yamlcfg.Node) {
	e := api.Entity{ID: api.Name(id)}
	n.Fields(append(entityFields(&e), yamlcfg.Field{Name: "limits", Read: func(n yamlcfg.Node) {
		n.Entries("a resource", func(resource string, n yamlcfg.Node) { p.limits(n, limiter.EntityLimitsRef(id, resource)) })
	}})...)
	p.addEntity(n, e)
}

// entityFields reads the members of an entity that both forms have.
func entityFields(e *api.Entity) []yamlcfg.Field {
	return []yamlcfg.Field{
		{Name: "name", Read: yamlcfg.Text(&e.Name).Decode},
		{Name: "parent", Read: func(n yamlcfg.Node) { name(n, &e.Parent) }},
		{Name: "plan", Read: yamlcfg.Text(&e.Plan).Decode},
		{Name: "cascade", Read: yamlcfg.Bool(&e.Cascade).Decode},
		{Name: "metadata", Read: func(n yamlcfg.Node) {
			e.Metadata = map[string]string{}
			n.Entries("a member of metadata", func(name string, n yamlcfg.Node) {
				var value string
				yamlcfg.Text(&value).Decode(n)
				e.Metadata[name] = value
			})
		}},
	}
}

func (p *parser) addEntity(n yamlcfg.Node, e api.Entity) {
	if e.Cascade && e.Parent == "" {
		n.Failf("cascade is true, and there is no parent that could consume: give parent too")
		return
	}
	p.add(n, ofEntity(e))
}

// hierarchy reports entities that are their own ancestors, or have too many.
func (p *parser) hierarchy() (problems yamlcfg.Problems) {
	entities := make(map[string]limiter.Entity)
	for _, r := range p.Records {
		if r.Entity != nil {
			entities[r.Ref.Entity] = limiter.Entity{ID: r.Ref.Entity, Parent: string(r.Entity.Parent)}
		}
	}
	for _, r := range p.Records {
		err := limiter.CheckHierarchy(entities[r.Ref.Entity], func(id string) (limiter.Entity, bool) {
			e, ok := entities[id]
			return e, ok
		})
		if err != nil && r.Entity != nil {
			text := strings.TrimPrefix(err.Error(), limiter.ErrInvalid.Error()+": ")
			problems = append(problems, yamlcfg.Problem{File: r.file, Line: r.line, Text: text})
		}
	}
	slices.SortFunc(problems, func(a, b yamlcfg.Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return problems
}

// Place is where a record stands in the files: "file:line".
func (r Record) Place() string { return fmt.Sprintf("%s:%d", r.file, r.line) }
