package config

import "github.com/ratelimit/ratelimit/config/yamlcfg"

// Headers are the groups of headers that an answer carries.
type Headers struct {
	RetryAfter bool          // retry-after on a denial; default true
	XRateLimit bool          // x-ratelimit-limit, -remaining and -reset; default true
	OpenAI     OpenAIHeaders // x-ratelimit-limit-requests and so on; default none
	IETF       bool          // ratelimit-policy and ratelimit; default false
}

// OpenAIHeaders are the names of the limits that OpenAI's headers report.
type OpenAIHeaders struct {
	Requests string // "" = no headers of requests
	Tokens   string // "" = no headers of tokens
}

// headers is a list of groups of headers. The path of openai is set to at.
func headers(out *Headers, at *string) yamlcfg.Schema {
	groups := yamlcfg.Either{Mapping: out.openAI(at), Other: out.group()}
	shape := yamlcfg.Shape{Type: []string{"array", "null"}, Items: groups.Shape()}
	return yamlcfg.Scalar{Of: shape, Read: func(n yamlcfg.Node) {
		if n.IsList() {
			*out = Headers{}
		}
		n.Items(groups.Decode)
	}}
}

// group is a group that is a single word.
func (h *Headers) group() yamlcfg.Schema {
	var on *bool
	word := yamlcfg.OneOf(&on, yamlcfg.As("retry-after", &h.RetryAfter), yamlcfg.As("x-ratelimit", &h.XRateLimit), yamlcfg.As("ietf", &h.IETF), yamlcfg.As("openai", new(bool)))
	shape := word.Shape()
	shape.Enum = shape.Enum[:3] // without openai, which has keys
	return yamlcfg.Scalar{Of: *shape, Read: func(n yamlcfg.Node) {
		on = nil
		word.Decode(n)
		switch {
		case on == nil: // reported
		case n.Raw() == "openai":
			n.Failf("openai needs the names of limits: write {openai: {requests: rpm, tokens: tpm}}")
		case *on:
			n.Failf("%s is given twice: remove one", n.Raw())
		default:
			*on = true
		}
	}}
}

// openAI is the group {openai: {requests: …, tokens: …}}.
func (h *Headers) openAI(at *string) yamlcfg.Schema {
	return yamlcfg.Object{Title: "headers", Keys: []yamlcfg.Key{key("openai", "[headers of OpenAI](headers.md#openai)", keys(
		key("requests", "limit of the `-requests` headers", limitName(&h.OpenAI.Requests)),
		key("tokens", "limit of the `-tokens` headers", limitName(&h.OpenAI.Tokens)),
	))}}.Then(func(n yamlcfg.Node, sound bool) {
		given := n.Given("openai")
		switch {
		case !given && sound:
			n.Failf("must be retry-after, x-ratelimit, ietf or {openai: {requests: rpm, tokens: tpm}}, not an empty mapping")
		case given && *at != "":
			n.Failf("openai is given twice: remove one")
		case given && sound && h.OpenAI == OpenAIHeaders{}:
			n.Failf("openai needs requests or tokens, the names of limits: {openai: {requests: rpm, tokens: tpm}}")
		}
		if given {
			*at = n.Below("openai")
		}
	})
}
