package config

import (
	"slices"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// headers is a list of groups of headers. The path of openai is set to at.
func headers(out *Headers, at *string) yamlcfg.Schema {
	shape := yamlcfg.Shape{Type: []string{"array", "null"}, Items: &yamlcfg.Shape{AnyOf: []*yamlcfg.Shape{
		{Enum: []any{"retry-after", "x-ratelimit", "ietf"}}, openAI(new(OpenAIHeaders)).Shape(),
	}}}
	return yamlcfg.Scalar{Of: shape, Read: headerGroups{out, at}.decode}
}

// headerGroups are the groups, and the path of openai, "" = none.
type headerGroups struct {
	out *Headers
	at  *string
}

func (s headerGroups) decode(d *yamlcfg.Decoder, v yamlcfg.Value) {
	items, ok := d.Sequence(v)
	if !ok || v.Null() {
		return
	}
	*s.out = Headers{}
	for _, item := range items {
		if item.IsMapping() {
			s.openAI(d, item)
		} else {
			s.group(d, item)
		}
	}
}

// group decodes a group that is a single word.
func (s headerGroups) group(d *yamlcfg.Decoder, item yamlcfg.Value) {
	var on *bool
	yamlcfg.OneOf(&on, yamlcfg.Word[*bool]{Text: "retry-after", Value: &s.out.RetryAfter}, yamlcfg.Word[*bool]{Text: "x-ratelimit", Value: &s.out.XRateLimit},
		yamlcfg.Word[*bool]{Text: "ietf", Value: &s.out.IETF}, yamlcfg.Word[*bool]{Text: "openai"}).Decode(d, item)
	switch {
	case item.IsScalar() && item.Text() == "openai":
		d.Failf(item, "openai needs the names of limits: write {openai: {requests: rpm, tokens: tpm}}")
	case on == nil: // reported
	case *on:
		d.Failf(item, "%s is given twice: remove one", item.Text())
	default:
		*on = true
	}
}

// openAI decodes {openai: {requests: …, tokens: …}}.
func (s headerGroups) openAI(d *yamlcfg.Decoder, item yamlcfg.Value) {
	path := yamlcfg.Join(item.Path, "openai")
	before := d.Failures()
	openAI(&s.out.OpenAI).Decode(d, item)
	if _, given := d.Place(d.Scope + path); !given {
		if d.Failures() == before {
			d.Failf(item, "must be retry-after, x-ratelimit, ietf or {openai: {requests: rpm, tokens: tpm}}, not an empty mapping")
		}
		return
	}
	switch {
	case *s.at != "":
		d.Failf(item, "openai is given twice: remove one")
	case d.Failures() == before && s.out.OpenAI == OpenAIHeaders{}:
		d.Failf(item, "openai needs requests or tokens, the names of limits: {openai: {requests: rpm, tokens: tpm}}")
	}
	*s.at = path
}

// openAI is the group with names of limits.
func openAI(out *OpenAIHeaders) yamlcfg.Schema {
	return yamlcfg.Object{Title: "headers", Keys: []yamlcfg.Key{key("openai", "the headers of OpenAI, as `{openai: {requests: rpm, tokens: tpm}}`", yamlcfg.Object{Keys: []yamlcfg.Key{
		key("requests", "the limit of the `-requests` headers", limitName(&out.Requests)),
		key("tokens", "the limit of the `-tokens` headers", limitName(&out.Tokens)),
	}})}}
}

// unheard warns of headers that are never sent, as no rule outside shadow mode consumes their
// limit.
func (f *file) unheard(r *yamlcfg.Report) {
	on := f.cfg.Headers.OpenAI
	for _, h := range []struct{ key, limit string }{{"requests", on.Requests}, {"tokens", on.Tokens}} {
		if h.limit != "" && !anyConsumes(f.cfg.Rules, h.limit) {
			r.Warn(r.Find(yamlcfg.Join(f.openAI, h.key)), "no rule consumes %s: these headers are never sent", h.limit)
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
