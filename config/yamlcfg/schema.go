package yamlcfg

import (
	"fmt"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A Schema says which values may stand at one place of a file, and which variable they set.
type Schema interface {
	// Decode reads the value into the variable of the schema, and reports its mistakes. After a
	// mistake the variable keeps its default.
	Decode(d *Decoder, v Value)
	// Shape describes the values for editors. It is made anew by each call.
	Shape() *Shape
}

// Object is a mapping with known keys.
type Object struct {
	Title   string // where docs/configuration.md describes the keys; "" = by their path
	Keys    []Key
	Needs   []string // keys that must be there
	OneOf   []string // keys of which one must be there
	Missing string   // the mistake when they are not; "" = Then reports it

	then func(d *Decoder, v Value, sound bool)
}

// Key is a key of an Object.
type Key struct {
	Name   string
	Doc    string // one line of Markdown, as in docs/configuration.md
	Schema Schema
}

// Then returns the object with a check of its values together. It is called after the keys are
// read; sound says that they have no mistake.
func (o Object) Then(check func(d *Decoder, v Value, sound bool)) Object {
	o.then = check
	return o
}

// Decode reads the keys that are there, and reports those that are unknown.
func (o Object) Decode(d *Decoder, v Value) {
	before := d.Failures()
	have := make(map[string]bool, len(o.Keys))
	pairs, _ := d.mapping(v)
	for _, p := range pairs {
		i := slices.IndexFunc(o.Keys, func(k Key) bool { return k.Name == p.name })
		if i < 0 {
			d.unknown(p, v, o.names())
			continue
		}
		have[p.name] = true
		o.Keys[i].Schema.Decode(d, d.value(p.node, p.key.Path))
	}
	lacks := func(name string) bool { return !have[name] }
	missing := slices.ContainsFunc(o.Needs, lacks) || len(o.OneOf) > 0 && !slices.ContainsFunc(o.OneOf, func(n string) bool { return have[n] })
	if missing && o.Missing != "" && d.Failures() == before {
		d.Failf(v, "%s", o.Missing)
	}
	if o.then != nil {
		o.then(d, v, d.Failures() == before)
	}
}

func (o Object) names() []string {
	names := make([]string, len(o.Keys))
	for i, k := range o.Keys {
		names[i] = k.Name
	}
	return names
}

// List is a list of any length.
type List[T any] struct {
	Out  *[]T
	Item func(*T) Schema
}

// Decode reads the items.
func (l List[T]) Decode(d *Decoder, v Value) {
	items, _ := d.Sequence(v)
	*l.Out = make([]T, len(items))
	for i, item := range items {
		l.Item(&(*l.Out)[i]).Decode(d, item)
	}
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
	Path  string
	Value T
}

// Decode reads the entries in the order of the file.
func (m Dict[T]) Decode(d *Decoder, v Value) {
	pairs, _ := d.mapping(v)
	*m.Out = make([]Entry[T], 0, len(pairs))
	for _, p := range pairs {
		if d.hidden[p.key.node] && len(p.name) > longestName { // it may be a secret in the place of a name
			p.key.Path = Join(v.Path, "*")
		}
		if p.name == "" {
			d.Failf(p.key, "the name of %s must not be empty", m.What)
			continue
		}
		if m.Name != nil {
			if err := m.Name(p.name); err != nil {
				d.Failf(p.key, "%s", err)
				continue
			}
		}
		*m.Out = append(*m.Out, Entry[T]{Name: p.name, Path: p.key.Path})
		m.Item(&(*m.Out)[len(*m.Out)-1].Value).Decode(d, d.value(p.node, p.key.Path))
	}
}

// Either is a mapping, or a value of another form.
type Either struct {
	Mapping Schema
	Other   Schema
}

// Decode reads the form that is there.
func (e Either) Decode(d *Decoder, v Value) {
	if v.IsMapping() {
		e.Mapping.Decode(d, v)
		return
	}
	e.Other.Decode(d, v)
}

// Scalar is a value without keys.
type Scalar struct {
	Read func(d *Decoder, v Value)
	Of   Shape
}

// Decode calls the function.
func (s Scalar) Decode(d *Decoder, v Value) { s.Read(d, v) }

// Given is a schema that notes whether its key is there.
type Given struct {
	Schema

	Out *bool // set where the key is there
}

// Decode notes the key and reads its value.
func (g Given) Decode(d *Decoder, v Value) {
	*g.Out = true
	g.Schema.Decode(d, v)
}

// ListGiven notes whether a list was given, which may be empty. A key without a value gives no
// list.
type ListGiven struct {
	Schema

	Out *bool
}

// Decode notes whether there is a list, and reads it.
func (g ListGiven) Decode(d *Decoder, v Value) {
	*g.Out = !isNull(v.node)
	g.Schema.Decode(d, v)
}

// DidYouMean returns a hint when one of the names is close to the given one.
func DidYouMean(name string, known []string) string {
	best := limiter.ClosestName(name, known)
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}
