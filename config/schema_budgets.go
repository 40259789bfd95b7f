package config

import (
	"encoding/base64"
	"net/url"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Budgets are the budgets of limits, and the webhook that gets their events.
type Budgets struct {
	Set     *limiter.BudgetSet // of the limits of the file; nil = none
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

// schema is the section. The budgets themselves stand on limits.
func (b *budgets) schema() yamlcfg.Schema {
	return elsewhere{yamlcfg.Object{Keys: []yamlcfg.Key{key("webhook", "receiver of the events", yamlcfg.Confidential{Schema: b.webhook()})}}}
}

// elsewhere is the section with a hint for limits, which stand elsewhere.
type elsewhere struct{ yamlcfg.Object }

// Decode reads the section.
func (s elsewhere) Decode(d *yamlcfg.Decoder, v yamlcfg.Value) {
	s.Keys = append(s.Keys, key("limits", "", yamlcfg.Scalar{Read: func(d *yamlcfg.Decoder, v yamlcfg.Value) {
		d.Failf(v, "are not given here: a budget stands on its limit, such as limits: {system: {tokens: {rate: 100/minute, budget: {month: 50_000_000}}}}")
	}}))
	s.Object.Decode(d, v)
}

// webhook is a URL and a key.
func (b *budgets) webhook() yamlcfg.Schema {
	return yamlcfg.Object{Title: "webhook", Needs: []string{"url", "key"}, Keys: []yamlcfg.Key{
		key("url", "never logged", yamlcfg.Name(&b.url)), key("key", "signs the calls; text or `{file: …}`", b.key.schema()),
	}}.Then(func(d *yamlcfg.Decoder, v yamlcfg.Value, sound bool) {
		switch {
		case !sound || v.Null():
		case b.url == "" || b.key.text == "" && b.key.file == "":
			d.Failf(v, "needs url, and key: {file: ...}, which signs the calls")
		case !isWebhook(b.url):
			d.Fail(d.Find(yamlcfg.Join(v.Path, "url")), "must be a URL of scheme, host and path, such as https://alerts.example.com/ratelimit, without a user and a fragment")
		default:
			b.called = true
		}
	})
}

func isWebhook(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil && u.Fragment == ""
}

// read completes the webhook, and returns the file of its key as a source.
func (b *budgets) read(in *reader, main string, out *Budgets, report *yamlcfg.Report) []source {
	if !b.called {
		return nil
	}
	text, sources := b.key.read(in, main, report)
	if key, ok := webhookKey(text); ok {
		out.Webhook = Webhook{URL: b.url, Key: key}
	} else if text != "" || b.key.file == "" {
		report.Fail(b.key.at, "is no key: 32 to 64 random bytes in base64: openssl rand -base64 32")
	}
	return sources
}

func webhookKey(text string) ([]byte, bool) {
	key, err := base64.StdEncoding.DecodeString(text)
	return key, err == nil && len(key) >= 32 && len(key) <= 64
}
