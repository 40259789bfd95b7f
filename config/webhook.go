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

// webhook is a webhook in the form of the file. Its key is read later.
type webhook struct {
	url   string
	key   sealingKey
	valid bool
}

// budgets is the section of budgets, which has only the webhook.
func budgets(w *webhook) yamlcfg.Schema {
	return elsewhere{keys(key("webhook", "receiver of the events", yamlcfg.Confidential{Schema: w.schema()}))}
}

// elsewhere is the section with a hint for budgets, which stand on their limits.
type elsewhere struct{ yamlcfg.Object }

// Decode reads the section.
func (s elsewhere) Decode(n yamlcfg.Node) {
	s.Keys = append(s.Keys, key("limits", "", yamlcfg.Scalar{Read: func(n yamlcfg.Node) {
		n.Failf("are not given here: a budget stands on its limit, such as limits: {system: {tokens: {rate: 100/minute, budget: {month: 50_000_000}}}}")
	}}))
	s.Object.Decode(n)
}

func (w *webhook) schema() yamlcfg.Schema {
	return yamlcfg.Object{Title: "webhook", Needs: []string{"url", "key"}, Keys: []yamlcfg.Key{
		key("url", "never logged", yamlcfg.Name(&w.url)), key("key", "signs the calls; text or `{file: …}`", w.key.schema()),
	}}.Then(func(n yamlcfg.Node, sound bool) {
		switch {
		case !sound || n.Empty():
		case w.url == "" || w.key.text == "" && w.key.file == "":
			n.Failf("needs url, and key: {file: ...}, which signs the calls")
		case !isWebhook(w.url):
			n.FailAt("url", "must be a URL of scheme, host and path, such as https://alerts.example.com/ratelimit, without a user and a fragment")
		default:
			w.valid = true
		}
	})
}

func isWebhook(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil && u.Fragment == ""
}

// read reads the key of a valid webhook, and returns its file as a source.
func (w *webhook) read(in *reader, main string, report *yamlcfg.Report) (out Webhook, sources []source) {
	if !w.valid {
		return Webhook{}, nil
	}
	text, sources, ok := w.key.read(in, main, report)
	key, err := base64.StdEncoding.DecodeString(text)
	if ok && (err != nil || len(key) < 32 || len(key) > 64) {
		report.Fail(w.key.at, "is no key: 32 to 64 random bytes in base64: openssl rand -base64 32")
	}
	return Webhook{URL: w.url, Key: key}, sources
}
