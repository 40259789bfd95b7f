package config

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// confidential is a part of the file that may hold secrets, such as keys and tokens, on purpose or
// by mistake. No problem repeats a value or an unknown key of it.
type confidential struct{ schema }

func (c confidential) decode(d *decoder, v value) {
	d.hide(v.node)
	c.schema.decode(d, v)
}

// longestName is how many bytes of a name that replaces a secret are repeated. Secrets are longer.
const longestName = 24

// hide keeps the text of a node, and of all nodes below it, out of every problem.
func (d *decoder) hide(n *yaml.Node) {
	if n == nil || d.hidden[n] {
		return
	}
	d.hidden[n] = true
	d.hide(n.Alias)
	for _, below := range n.Content {
		d.hide(below)
	}
}

// describe names the kind of a node, for "must be …, not …".
func (d *decoder) describe(n *yaml.Node) string {
	text, number := fmt.Sprintf("the text %q", shorten(n.Value, maxQuoted)), shorten(n.Value, maxQuoted)
	if d.hidden[n] {
		text, number = "text", "a value"
	}
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "nothing"
	case n.Tag == "!!str":
		return text
	case n.Tag != "!!int" && n.Tag != "!!float":
		return number
	case d.hidden[n]:
		return "a number"
	default:
		return "the number " + number
	}
}

// unknown reports a key of a mapping that is none of the known ones.
func (d *decoder) unknown(p pair, in value, known []string) {
	if d.hidden[p.key.node] {
		d.failf(value{node: p.key.node, path: in.path}, "has an unknown key (known here: %s)", strings.Join(known, ", "))
		return
	}
	d.failf(p.key, "unknown key %q%s (known here: %s)", p.name, didYouMean(p.name, known), strings.Join(known, ", "))
}

// twice reports a key of a mapping that an earlier line has already.
func (d *decoder) twice(key, in value, first int) {
	if d.hidden[key.node] {
		d.failf(value{node: key.node, path: in.path}, "has a key twice; it stands at line %d already: remove one", first)
		return
	}
	d.failf(key, "the key %q is given twice; it stands at line %d already: remove one", key.node.Value, first)
}

// mainSchema is the schema of the configuration itself. A file without keys is no configuration. It
// may be any file that was named by mistake, so problems repeat nothing of it.
type mainSchema struct{ schema }

func (s mainSchema) decode(d *decoder, v value) {
	if v.node.Kind != yaml.MappingNode && !isNull(v.node) {
		d.hide(v.node)
	}
	switch {
	case hasKey(v.node, "descriptors"):
		d.failf(v, "is a file of envoyproxy/ratelimit, not a configuration: %s", includeHint)
	case hasKey(v.node, "domain") && hasKey(v.node, "rules") && !hasKey(v.node, "domains"):
		d.failf(v, "is the file of one domain, not a configuration: %s", includeHint)
	default:
		s.schema.decode(d, v)
	}
}

const includeHint = "name it with --rules, or in a configuration under include"
