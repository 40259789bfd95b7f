package config

import (
	"fmt"
	"slices"

	"github.com/ratelimit/ratelimit/internal/nearname"
)

// A schema says which values may stand at one place of a file, and which variable they set.
type schema interface {
	// decode reads the value into the variable of the schema, and reports its mistakes. After a
	// mistake the variable keeps its default.
	decode(d *decoder, v value)
	// walk calls visit for every key at and below a path.
	walk(path string, visit func(key string))
}

// object is a mapping with known keys.
type object struct {
	title string // where docs/configuration.md describes the keys; "" = by their path
	keys  []key
}

type key struct {
	name   string
	schema schema
}

func (o object) decode(d *decoder, v value) {
	pairs, _ := d.mapping(v)
	for _, p := range pairs {
		i := slices.IndexFunc(o.keys, func(k key) bool { return k.name == p.name })
		if i < 0 {
			d.unknown(p, v, o.names())
			continue
		}
		o.keys[i].schema.decode(d, d.value(p.node, p.key.path))
	}
}

func (o object) walk(path string, visit func(string)) {
	if o.title != "" {
		path = o.title
	}
	for _, k := range o.keys {
		visit(join(path, k.name))
		k.schema.walk(join(path, k.name), visit)
	}
}

func (o object) names() []string {
	names := make([]string, len(o.keys))
	for i, k := range o.keys {
		names[i] = k.name
	}
	return names
}

// list is a list of any length.
type list[T any] struct {
	out  *[]T
	item func(*T) schema
}

func (l list[T]) decode(d *decoder, v value) {
	items, _ := d.sequence(v)
	*l.out = make([]T, len(items))
	for i, item := range items {
		l.item(&(*l.out)[i]).decode(d, item)
	}
}

func (l list[T]) walk(path string, visit func(string)) {
	var zero T
	l.item(&zero).walk(path+"[]", visit)
}

// dict is a mapping whose keys are names that the user chooses, in the order of
// the file.
type dict[T any] struct {
	out  *[]entry[T]
	what string             // the kind of thing that the keys name, such as "a limit"
	name func(string) error // checks a key; nil = any key but ""
	item func(*T) schema
}

type entry[T any] struct {
	name  string
	path  string
	value T
}

func (m dict[T]) decode(d *decoder, v value) {
	pairs, _ := d.mapping(v)
	*m.out = make([]entry[T], 0, len(pairs))
	for _, p := range pairs {
		if d.hidden[p.key.node] && len(p.name) > longestName { // it may be a secret in the place of a name
			p.key.path = join(v.path, "*")
		}
		if p.name == "" {
			d.failf(p.key, "the name of %s must not be empty", m.what)
			continue
		}
		if m.name != nil {
			if err := m.name(p.name); err != nil {
				d.failf(p.key, "%s", reason(err))
				continue
			}
		}
		*m.out = append(*m.out, entry[T]{name: p.name, path: p.key.path})
		m.item(&(*m.out)[len(*m.out)-1].value).decode(d, d.value(p.node, p.key.path))
	}
}

func (m dict[T]) walk(path string, visit func(string)) {
	var zero T
	m.item(&zero).walk(path+".*", visit)
}

// scalar is a value without keys.
type scalar func(d *decoder, v value)

func (s scalar) decode(d *decoder, v value) { s(d, v) }

func (scalar) walk(string, func(string)) {}

// given is a schema that notes whether its key is there.
type given struct {
	schema

	out *bool
}

func (g given) decode(d *decoder, v value) {
	*g.out = true
	g.schema.decode(d, v)
}

// listGiven notes whether a list was given, which may be empty. A key without a value gives no
// list.
type listGiven struct {
	schema

	out *bool
}

func (g listGiven) decode(d *decoder, v value) {
	*g.out = !isNull(v.node)
	g.schema.decode(d, v)
}

// didYouMean returns a hint when one of the names is close to the given one.
func didYouMean(name string, known []string) string {
	best := nearname.Closest(name, known)
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}
