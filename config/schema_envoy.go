package config

import (
	"math"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// maxTree bounds how deep descriptors of an envoyproxy/ratelimit file nest.
const maxTree = 32

// envoyFile is a file of envoyproxy/ratelimit: a domain and its descriptors.
type envoyFile struct{ out *domain }

func (s envoyFile) decode(d *decoder, v value) {
	before := d.failures()
	s.object().decode(d, v)
	s.out.spec.Path = d.scope + v.path
	s.out.at = d.find(d.scope + join(v.path, "domain"))
	if s.out.spec.Domain == "" && d.failures() == before {
		d.failf(v, "needs domain, the name that the gateway's rate limit filter sends")
	}
}

func (s envoyFile) walk(path string, visit func(string)) { s.object().walk(path, visit) }

func (s envoyFile) object() object {
	return object{title: "envoyproxy", keys: []key{
		{"domain", name(&s.out.spec.Domain)},
		{"descriptors", listGiven{tree(&s.out.spec.Tree, maxTree), &s.out.says}},
	}}
}

// tree is a list of descriptors, each with more below it.
func tree(out *[]descriptor.TreeSpec, levels int) schema {
	return list[descriptor.TreeSpec]{out: out, item: func(s *descriptor.TreeSpec) schema { return treeSchema{s, levels} }}
}

type treeSchema struct {
	out    *descriptor.TreeSpec
	levels int // the most levels, this one included
}

func (s treeSchema) decode(d *decoder, v value) {
	before := d.failures()
	s.out.Path = d.scope + v.path
	if s.levels > 0 {
		s.object(tree(&s.out.Children, s.levels-1)).decode(d, v)
	} else {
		d.failf(v, "descriptors are nested more than %d deep: take levels out", maxTree)
	}
	if d.failures() > before {
		d.unsound[s.out.Path] = true
	}
}

func (s treeSchema) walk(path string, visit func(string)) {
	s.object(scalar(nil)).walk(path, visit) // the levels below are like this one
}

func (s treeSchema) object(below schema) object {
	return object{title: "descriptor", keys: []key{
		{"key", name(&s.out.Key)},
		{"value", literal(&s.out.Value)},
		{"rate_limit", treeLimit{&s.out.Limit}},
		{"shadow_mode", boolean(&s.out.Shadow)},
		{"quota_mode", boolean(&s.out.Quota)},
		{"share_threshold", boolean(&s.out.ShareThreshold)},
		{"detailed_metric", without("metrics have the names of rules, never values of descriptors")},
		{"value_to_metric", without("metrics have the names of rules, never values of descriptors")},
		{"metadata", without("answers carry metadata of their own")},
		{"descriptors", below},
	}}
}

// without is a key that is accepted and has no effect.
func without(why string) schema {
	return scalar(func(d *decoder, v value) { d.warn(d.at(v), "has no effect: %s", why) })
}

// treeLimit is the rate_limit of a descriptor.
type treeLimit struct{ out **descriptor.TreeLimitSpec }

func (s treeLimit) decode(d *decoder, v value) {
	var l descriptor.TreeLimitSpec
	requests := int64(-1)
	before := d.failures()
	s.object(&l, &requests).decode(d, v)
	if requests < 0 && !l.Unlimited && d.failures() == before {
		d.warn(d.at(v), "has no requests_per_unit, and so denies everything")
	}
	l.RequestsPerUnit = uint32(max(requests, 0)) // #nosec G115 -- the schema holds it to 32 bits
	*s.out = &l
}

func (s treeLimit) walk(path string, visit func(string)) {
	s.object(&descriptor.TreeLimitSpec{}, new(int64)).walk(path, visit)
}

func (s treeLimit) object(l *descriptor.TreeLimitSpec, requests *int64) object {
	replaced := func(out *string) schema {
		return object{title: "rate_limit.replaces", keys: []key{{"name", name(out)}}}
	}
	return object{title: "rate_limit", keys: []key{
		{"unit", name(&l.Unit)},
		{"requests_per_unit", integer(requests, 0, math.MaxUint32)},
		{"unlimited", boolean(&l.Unlimited)},
		{"name", text(&l.Name)},
		{"replaces", list[string]{out: &l.Replaces, item: replaced}},
	}}
}
