package config

import (
	"unicode/utf8"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// denial is a rule that denies: true, or an object with its answer.
func denial(out **descriptor.Denial) yamlcfg.Schema {
	var d descriptor.Denial
	var yes bool
	return yamlcfg.Either{
		Mapping: yamlcfg.Object{Title: "deny", Keys: []yamlcfg.Key{
			key("status", "status over `/json`, and in the metadata for Envoy", yamlcfg.Integer(&d.Status, 400, 599)),
			key("body", "body of the denial, plain text as `body.text`", bodyText(&d.Body)),
		}}.Then(func(yamlcfg.Node, bool) { *out = &d }),
		Other: yamlcfg.Scalar{Of: *yamlcfg.Bool(&yes).Shape(), Read: func(n yamlcfg.Node) {
			yamlcfg.Bool(&yes).Decode(n)
			if yes {
				*out = &d
			}
		}},
	}
}

// bodyText is the text of a body.
func bodyText(out *string) yamlcfg.Schema {
	text := yamlcfg.Name(out)
	return yamlcfg.Scalar{Of: *text.Shape(), Read: func(n yamlcfg.Node) {
		text.Decode(n)
		switch {
		case len(*out) > descriptor.MaxBody:
			n.Failf("has %d bytes; a body has at most %d", len(*out), descriptor.MaxBody)
		case !utf8.ValidString(*out):
			n.Failf("is no UTF-8 text")
		default:
			if err := descriptor.CheckBody(*out); err != nil {
				n.Failf("%v", err)
			}
		}
	}}
}

// body is the body of denials: a word, or text.
func body(out *descriptor.Body) yamlcfg.Schema {
	return yamlcfg.Either{
		Mapping: yamlcfg.Object{Title: "body", Needs: []string{"text"}, Missing: `needs text, such as {text: "Slow down."}`, Keys: []yamlcfg.Key{
			key("text", "body of at most 4,096 bytes, with [placeholders](#bodies-of-denials)", bodyText(&out.Text)),
			key("type", "its content type", yamlcfg.Name(&out.Type)),
		}}.Then(func(n yamlcfg.Node, _ bool) {
			out.Form = descriptor.BodyText
			for _, c := range []byte(out.Type) {
				if c < ' ' || c > '~' {
					n.Failf("has a content type with a byte that no header may have: write one like application/json")
					return
				}
			}
		}),
		Other: yamlcfg.OneOf(&out.Form, yamlcfg.As("none", descriptor.NoBody), yamlcfg.As("openai", descriptor.BodyOpenAI), yamlcfg.As("problem", descriptor.BodyProblem)),
	}
}
