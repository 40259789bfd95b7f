package config

import (
	"encoding/base64"
	"net/url"

	"github.com/ratelimit/ratelimit/pkg/budget"
)

// Budgets are the budgets of limits, and the webhook that gets their events.
type Budgets struct {
	Set     *budget.Set // of the limits of the file; nil = none
	Webhook Webhook
}

// Webhook is called for each event.
type Webhook struct {
	URL string // "" = no webhook: events are in the log only; may hold a secret
	Key []byte // signs calls, 32 to 64 bytes
}

// budgets is the section as the file has it.
type budgets struct {
	url    string
	key    sealingKey
	called bool // the webhook is given and valid; its key is not read yet
}

func (b *budgets) schema() schema { return budgetsSchema{b} }

// budgetsSchema is the section. The budgets themselves stand on limits.
type budgetsSchema struct{ out *budgets }

func (s budgetsSchema) decode(d *decoder, v value) {
	o := s.object()
	o.keys = append(o.keys, key{"limits", scalar(func(d *decoder, v value) {
		d.failf(v, "are not given here: a budget stands on its limit, such as limits: {system: {tokens: {rate: 100/minute, budget: {month: 50_000_000}}}}")
	})})
	o.decode(d, v)
}

func (s budgetsSchema) object() object {
	return object{keys: []key{{"webhook", confidential{webhookSchema(s)}}}}
}

func (s budgetsSchema) walk(path string, visit func(string)) { s.object().walk(path, visit) }

// webhookSchema is a URL and a key.
type webhookSchema struct{ out *budgets }

func (s webhookSchema) decode(d *decoder, v value) {
	before := d.failures()
	s.object().decode(d, v)
	switch b := s.out; {
	case d.failures() > before || isNull(v.node):
	case b.url == "" || b.key.text == "" && b.key.file == "":
		d.failf(v, "needs url, and key: {file: ...}, which signs the calls")
	case !isWebhook(b.url):
		d.fail(d.find(join(v.path, "url")), "must be a URL of scheme, host and path, such as https://alerts.example.com/ratelimit, without a user and a fragment")
	default:
		b.called = true
	}
}

func (s webhookSchema) object() object {
	return object{title: "webhook", keys: []key{{"url", name(&s.out.url)}, {"key", sealingKeySchema{&s.out.key}}}}
}

func (s webhookSchema) walk(path string, visit func(string)) { s.object().walk(path, visit) }

func isWebhook(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil && u.Fragment == ""
}

// read completes the webhook, and returns the file of its key as a source.
func (b *budgets) read(in *reader, main string, out *Budgets, report *report) []source {
	if !b.called {
		return nil
	}
	text, sources := b.key.read(in, main, report)
	if key, ok := webhookKey(text); ok {
		out.Webhook = Webhook{URL: b.url, Key: key}
	} else if text != "" || b.key.file == "" {
		report.fail(b.key.at, "is no key: 32 to 64 random bytes in base64: openssl rand -base64 32")
	}
	return sources
}

func webhookKey(text string) ([]byte, bool) {
	key, err := base64.StdEncoding.DecodeString(text)
	return key, err == nil && len(key) >= 32 && len(key) <= 64
}
