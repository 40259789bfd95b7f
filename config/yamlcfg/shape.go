package yamlcfg

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
)

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
	MinItems    int               `json:"minItems,omitempty"`
	Items       *Shape            `json:"items,omitempty"`
	Properties  map[string]*Shape `json:"properties,omitempty"`
	Required    []string          `json:"required,omitempty"`
	Others      any               `json:"additionalProperties,omitempty"` // false, or a *Shape
	AnyOf       []*Shape          `json:"anyOf,omitempty"`

	page string // where docs/configuration.md describes the keys, "" = by their path
	doc  string // as in docs/configuration.md
}

// Doc is the description of a key in Markdown.
func (s *Shape) Doc() string { return s.doc }

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

var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// Shape describes the mapping. It may be left empty if no key must be there.
func (o Object) Shape() *Shape {
	s := &Shape{Type: []string{"object"}, Properties: make(map[string]*Shape, len(o.Keys)), Required: o.Needs, Others: false, page: o.Title}
	if o.Missing == "" {
		s.Type = append(s.Type, "null")
	}
	for _, k := range o.Keys {
		p := k.Schema.Shape()
		p.doc, p.Description = k.Doc, link.ReplaceAllString(k.Doc, "$1")
		s.Properties[k.Name] = p
	}
	for _, name := range o.OneOf {
		s.AnyOf = append(s.AnyOf, &Shape{Required: []string{name}})
	}
	return s
}

// Shape describes the list.
func (l List[T]) Shape() *Shape {
	var zero T
	return &Shape{Type: []string{"array", "null"}, Items: l.Item(&zero).Shape()}
}

// Shape describes the mapping.
func (m Dict[T]) Shape() *Shape {
	var zero T
	return &Shape{Type: []string{"object", "null"}, Others: m.Item(&zero).Shape()}
}

// Shape describes both forms.
func (e Either) Shape() *Shape {
	return &Shape{AnyOf: []*Shape{e.Mapping.Shape(), e.Other.Shape()}}
}

// Shape describes the value.
func (s Scalar) Shape() *Shape {
	shape := s.Of
	return &shape
}

// Shape describes the value without a default: its absence has a meaning of its own.
func (g Given) Shape() *Shape {
	s := g.Schema.Shape()
	s.Default = nil
	return s
}
