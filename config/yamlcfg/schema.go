package yamlcfg

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A Schema says which values may stand at one place of a file, and which variable they set.
type Schema interface {
	// Decode reads the value into the variable of the schema, and reports its mistakes. After a
	// mistake the variable keeps its default.
	Decode(n Node)
	// Shape describes the values for editors. It is made anew by each call.
	Shape() *Shape
}

// Shape says which values may stand at a place, in the words of JSON Schema (draft 2020-12). The
// zero value is any value.
type Shape struct {
	Dialect     string            `json:"$schema,omitempty"`
	Title       string            `json:"title,omitempty"`
	Description string            `json:"description,omitempty"`
	Type        []string          `json:"type,omitempty"`
	Enum        []any             `json:"enum,omitempty"`
	Pattern     string            `json:"pattern,omitempty"` // of text
	Minimum     json.Number       `json:"minimum,omitempty"`
	Maximum     json.Number       `json:"maximum,omitempty"`
	Default     any               `json:"default,omitempty"`
	Items       *Shape            `json:"items,omitempty"`
	Properties  map[string]*Shape `json:"properties,omitempty"`
	Required    []string          `json:"required,omitempty"`
	Others      any               `json:"additionalProperties,omitempty"` // false, or a *Shape
	AnyOf       []*Shape          `json:"anyOf,omitempty"`

	// The following are for the reference page.
	Kind   string `json:"-"` // "duration", "address"; "" = as Type says
	Range  string `json:"-"` // "1 to 1000"; "" = none
	Doc    string `json:"-"` // of a key, in Markdown
	Needed bool   `json:"-"` // a key that must be there
	page   string // where the page describes the keys, "" = by their path
}

// Walk calls visit for every key at and below a path, in the order of names.
func (s *Shape) Walk(path string, visit func(key string, s *Shape)) {
	if s.page != "" {
		path = s.page
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		at := Join(path, name)
		visit(at, s.Properties[name])
		s.Properties[name].Walk(at, visit)
	}
	if s.Items != nil {
		s.Items.Walk(path+"[]", visit)
	}
	if each, ok := s.Others.(*Shape); ok {
		each.Walk(path+".*", visit)
	}
	for _, form := range s.AnyOf {
		form.Walk(path, visit)
	}
}

// Object is a mapping with known keys.
type Object struct {
	Title   string // where docs/configuration.md describes the keys; "" = by their path
	Keys    []Key
	Needs   []string // keys that must be there
	OneOf   []string // keys of which one must be there
	Missing string   // the mistake when they are not; "" = Then reports it

	then func(n Node, sound bool)
}

// Key is a key of an Object.
type Key struct {
	Name   string
	Doc    string // one line of Markdown, as in docs/configuration.md
	Schema Schema
}

// Then returns the object with a check of its values together. It is called after the keys are
// read; sound says that they have no mistake.
func (o Object) Then(check func(n Node, sound bool)) Object {
	o.then = check
	return o
}

// Decode reads the keys that are there, and reports those that are unknown.
func (o Object) Decode(n Node) {
	before := n.Failures()
	have := make(map[string]bool, len(o.Keys))
	for _, p := range n.pairs(maxMerges) {
		i := slices.IndexFunc(o.Keys, func(k Key) bool { return k.Name == p.name })
		if i < 0 {
			o.unknown(p, n)
			continue
		}
		have[p.name] = true
		o.Keys[i].Schema.Decode(n.value(p.value, p.key.path))
	}
	has := func(name string) bool { return have[name] }
	missing := slices.ContainsFunc(o.Needs, func(name string) bool { return !have[name] }) || len(o.OneOf) > 0 && !slices.ContainsFunc(o.OneOf, has)
	if missing && o.Missing != "" && n.Failures() == before {
		n.Failf("%s", o.Missing)
	}
	if o.then != nil {
		o.then(n, n.Failures() == before)
	}
}

// unknown reports a key that is none of the known ones.
func (o Object) unknown(p pair, in Node) {
	known := make([]string, len(o.Keys))
	for i, k := range o.Keys {
		known[i] = k.Name
	}
	all := strings.Join(known, ", ")
	if in.hidden[p.key.yaml] {
		p.key.path = in.path
		p.key.Failf("has an unknown key (known here: %s)", all)
		return
	}
	hint := DidYouMean(p.name, known)
	if under := o.under(p.name); under != "" {
		hint = "; " + under + " has such a key"
	}
	p.key.Failf("unknown key %q%s (known here: %s)", p.name, hint, all)
}

// under returns the one known key whose mapping, or list of mappings, has a key of a name; "" = none, or several.
func (o Object) under(name string) (found string) {
	for _, k := range o.Keys {
		s, of := k.Schema.Shape(), k.Name
		if s.Items != nil {
			s, of = s.Items, "an item of "+k.Name
		}
		if !slices.ContainsFunc(append([]*Shape{s}, s.AnyOf...), func(s *Shape) bool { return s.Properties[name] != nil }) {
			continue
		}
		if found != "" {
			return ""
		}
		found = of
	}
	return found
}

// DidYouMean returns a hint when one of the names is close to the given one.
func DidYouMean(name string, known []string) string {
	best := limiter.ClosestName(name, known)
	if best == "" {
		return ""
	}
	return `; did you mean "` + best + `"?`
}

var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// Shape describes the mapping. It may be left empty if no key must be there.
func (o Object) Shape() *Shape {
	s := &Shape{Type: []string{"object"}, Properties: make(map[string]*Shape, len(o.Keys)), Required: o.Needs, Others: false, page: o.Title}
	if o.Missing == "" {
		s.Type = append(s.Type, "null")
	}
	for _, k := range o.Keys {
		p := k.Schema.Shape()
		p.Doc, p.Description, p.Needed = k.Doc, link.ReplaceAllString(k.Doc, "$1"), slices.Contains(o.Needs, k.Name)
		s.Properties[k.Name] = p
	}
	for _, name := range o.OneOf {
		s.AnyOf = append(s.AnyOf, &Shape{Required: []string{name}})
	}
	return s
}

// List is a list of any length. A missing value leaves the variable as it is.
type List[T any] struct {
	Out  *[]T
	Item func(*T) Schema
}

// Decode reads the items.
func (l List[T]) Decode(n Node) {
	if n.IsList() {
		*l.Out = make([]T, n.Size())
	}
	i := 0
	n.Items(func(item Node) {
		l.Item(&(*l.Out)[i]).Decode(item)
		i++
	})
}

// Shape describes the list.
func (l List[T]) Shape() *Shape {
	return &Shape{Type: []string{"array", "null"}, Items: l.Item(new(T)).Shape()}
}

// Dict is a mapping whose keys are names that the user chooses, in the order of
// the file.
type Dict[T any] struct {
	Out  *[]Entry[T]
	What string             // the kind of thing that the keys name, such as "a limit"
	Name func(string) error // checks a key; nil = any key but ""
	Item func(*T) Schema
}

// Entry is a key that the user chose, with its path and its value.
type Entry[T any] struct {
	Name  string
	Path  string // as of [Node.Path]
	Value T
}

// longestName is how many bytes of a name that replaces a secret are repeated. Secrets are longer.
const longestName = 24

// Decode reads the entries in the order of the file.
func (m Dict[T]) Decode(n Node) {
	pairs := n.pairs(maxMerges)
	*m.Out = make([]Entry[T], 0, len(pairs))
	for _, p := range pairs {
		if n.hidden[p.key.yaml] && len(p.name) > longestName { // it may be a secret in the place of a name
			p.key.path = Join(n.path, "*")
		}
		if p.name == "" {
			p.key.Failf("the name of %s must not be empty", m.What)
			continue
		}
		if m.Name != nil {
			if err := m.Name(p.name); err != nil {
				p.key.Failf("%s", err)
				continue
			}
		}
		*m.Out = append(*m.Out, Entry[T]{Name: p.name, Path: p.key.Path()})
		m.Item(&(*m.Out)[len(*m.Out)-1].Value).Decode(n.value(p.value, p.key.path))
	}
}

// Shape describes the mapping.
func (m Dict[T]) Shape() *Shape {
	return &Shape{Type: []string{"object", "null"}, Others: m.Item(new(T)).Shape()}
}

// Either is a mapping, or a value of another form.
type Either struct{ Mapping, Other Schema }

// Decode reads the form that is there.
func (e Either) Decode(n Node) {
	if n.IsMapping() {
		e.Mapping.Decode(n)
		return
	}
	e.Other.Decode(n)
}

// Shape describes both forms.
func (e Either) Shape() *Shape {
	return &Shape{AnyOf: []*Shape{e.Mapping.Shape(), e.Other.Shape()}}
}

// Confidential is a part of the file that may hold secrets, such as keys and tokens, on purpose or
// by mistake. No problem repeats a value or an unknown key of it.
type Confidential struct{ Schema }

// Decode hides the value and reads it.
func (c Confidential) Decode(n Node) {
	n.Hide()
	c.Schema.Decode(n)
}

// Scalar is a value without keys, or one that a function reads.
type Scalar struct {
	Read func(n Node)
	Of   Shape
}

// Decode calls the function.
func (s Scalar) Decode(n Node) { s.Read(n) }

// Shape describes the value.
func (s Scalar) Shape() *Shape { return &s.Of }
