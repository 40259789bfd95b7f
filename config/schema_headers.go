package config

import (
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// headersSchema is a list of groups of headers.
type headersSchema struct {
	out *Headers
	at  *string // the path of openai, "" = none
}

func (s headersSchema) decode(d *decoder, v value) {
	items, ok := d.sequence(v)
	if !ok || isNull(v.node) {
		return
	}
	*s.out = Headers{}
	for _, item := range items {
		if item.node.Kind == yaml.MappingNode {
			s.openAI(d, item)
		} else {
			s.group(d, item)
		}
	}
}

// group decodes a group that is a single word.
func (s headersSchema) group(d *decoder, item value) {
	var on *bool
	oneOf(&on, word[*bool]{"retry-after", &s.out.RetryAfter}, word[*bool]{"x-ratelimit", &s.out.XRateLimit},
		word[*bool]{"ietf", &s.out.IETF}, word[*bool]{text: "openai"}).decode(d, item)
	switch {
	case item.node.Kind == yaml.ScalarNode && item.node.Value == "openai":
		d.failf(item, "openai needs the names of limits: write {openai: {requests: rpm, tokens: tpm}}")
	case on == nil: // reported
	case *on:
		d.failf(item, "%s is given twice: remove one", item.node.Value)
	default:
		*on = true
	}
}

// openAI decodes {openai: {requests: …, tokens: …}}.
func (s headersSchema) openAI(d *decoder, item value) {
	path := join(item.path, "openai")
	before := d.failures()
	s.object(&s.out.OpenAI).decode(d, item)
	if _, given := d.places[d.scope+path]; !given {
		if d.failures() == before {
			d.failf(item, "must be retry-after, x-ratelimit, ietf or {openai: {requests: rpm, tokens: tpm}}, not an empty mapping")
		}
		return
	}
	switch {
	case *s.at != "":
		d.failf(item, "openai is given twice: remove one")
	case d.failures() == before && s.out.OpenAI == OpenAIHeaders{}:
		d.failf(item, "openai needs requests or tokens, the names of limits: {openai: {requests: rpm, tokens: tpm}}")
	}
	*s.at = path
}

func (headersSchema) object(out *OpenAIHeaders) object {
	return object{title: "headers", keys: []key{{"openai", object{keys: []key{
		{"requests", limitName(&out.Requests)},
		{"tokens", limitName(&out.Tokens)},
	}}}}}
}

func (s headersSchema) walk(path string, visit func(string)) {
	s.object(new(OpenAIHeaders)).walk(path, visit)
}

// unheard warns of headers that are never sent, as no rule outside shadow mode consumes their
// limit.
func (f *file) unheard(r *report) {
	on := f.cfg.Headers.OpenAI
	for _, h := range []struct{ key, limit string }{{"requests", on.Requests}, {"tokens", on.Tokens}} {
		if h.limit != "" && !anyConsumes(f.cfg.Rules, h.limit) {
			r.warn(r.find(join(f.openAI, h.key)), "no rule consumes %s: these headers are never sent", h.limit)
		}
	}
}

func anyConsumes(rules *descriptor.Rules, limit string) bool {
	for _, d := range rules.Domains() {
		for _, r := range d.Rules() {
			if !r.Shadow() && slices.Contains(r.Limits(), limit) {
				return true
			}
		}
	}
	return false
}
