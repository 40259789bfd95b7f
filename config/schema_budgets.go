package config

import (
	"encoding/base64"
	"net/url"

	"github.com/ratelimit/ratelimit/pkg/budget"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Budgets are amounts of usage at whose thresholds there are events.
type Budgets struct {
	Set     *budget.Set // nil = none
	Webhook Webhook
}

// Webhook is called for each event.
type Webhook struct {
	URL string // "" = there is none, and events are in the log only; may hold a secret
	Key []byte // signs calls, 32 to 64 bytes
}

// budgets is the section as the file has it.
type budgets struct {
	limits []budgetSpec
	url    string
	key    sealingKey
	called bool // the webhook is there, and sound but for its key
}

// budgetSpec is a budget as the file has it, and where.
type budgetSpec struct {
	budget.Budget

	at    place
	sound bool
}

func (b *budgets) schema() schema {
	return object{keys: []key{
		{"limits", list[budgetSpec]{out: &b.limits, item: func(s *budgetSpec) schema { return budgetSchema{s} }}},
		{"webhook", confidential{webhookSchema{b}}},
	}}
}

type budgetSchema struct{ out *budgetSpec }

func (s budgetSchema) decode(d *decoder, v value) {
	var window, tokens bool
	before := d.failures()
	s.object(&window, &tokens).decode(d, v)
	s.out.at = d.at(v)
	if d.failures() > before {
		return
	}
	if s.out.Limit == "" || !window || !tokens {
		d.failf(v, "needs limit, window and amount, such as {limit: tokens, window: month, amount: 50_000_000}")
		return
	}
	if err := limiter.ValidateLimitName(s.out.Limit); err != nil {
		d.failf(v, "%s", reason(err))
		return
	}
	s.out.sound = true
}

func (s budgetSchema) object(window, tokens *bool) object {
	b := &s.out.Budget
	return object{title: "budget", keys: []key{
		{"limit", name(&b.Limit)},
		{"window", given{oneOf(&b.Window, word[limiter.UsageWindow]{"hour", limiter.UsageHour}, word[limiter.UsageWindow]{"day", limiter.UsageDay},
			word[limiter.UsageWindow]{"month", limiter.UsageMonth}), window}},
		{"amount", given{integer(&b.Tokens, 1, limiter.MaxTokens), tokens}},
		{"namespace", name(&b.Selector.Namespace)},
		{"entity", name(&b.Selector.Entity)},
		{"resource", name(&b.Selector.Resource)},
	}}
}

func (s budgetSchema) walk(path string, visit func(string)) {
	s.object(new(bool), new(bool)).walk(path, visit)
}

// webhookSchema takes a URL and a key.
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

// read puts the section together, and returns the file of the key as a source.
func (b *budgets) read(in *reader, main string, out *Budgets, report *report) []source {
	all := make([]budget.Budget, 0, len(b.limits))
	seen := make(map[budget.Budget]place, len(b.limits))
	for _, s := range b.limits {
		if !s.sound {
			continue
		}
		all = append(all, s.Budget)
		of := s.Budget
		of.Tokens = 0
		if at, twice := seen[of]; twice {
			report.fail(s.at, "has the limit, the window and the buckets of the budget in line %d: give one of them", at.line)
		}
		seen[of] = s.at
	}
	if set, err := budget.NewSet(all...); err == nil {
		out.Set = set
	} else if len(all) > budget.MaxBudgets {
		report.fail(b.limits[budget.MaxBudgets].at, "%s", reason(err))
	}
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
