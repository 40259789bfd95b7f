package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Decider decides requests; *limiter.Limiter does.
type Decider interface {
	Decide(ctx context.Context, now time.Time, req *limiter.Request, d *limiter.Decision) error
}

// Explainer explains what a descriptor would do. It takes nothing from any bucket.
type Explainer struct {
	Rules   func() *descriptor.Rules // in force now
	Decider Decider
	Now     func() time.Time
}

// Question is the body of a request to /v1/explain.
type Question struct {
	Domain  string  `json:"domain"`
	Entries []Entry `json:"entries"`
	Hits    *uint64 `json:"hits,omitempty"` // absent = 1; 0 = a look
}

// Entry is one key and value of a descriptor.
type Entry struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Explanation says which rule a descriptor meets, what it would take, and from
// which buckets. Names that are not plain text are quoted as Go strings.
type Explanation struct {
	Domain    string   `json:"domain"`
	Namespace string   `json:"namespace,omitempty"`
	Outcome   string   `json:"outcome"` // unmatched, unlimited, takes, settles, denied
	Why       string   `json:"why,omitempty"`
	Rule      string   `json:"rule,omitempty"`
	Missed    []Missed `json:"missed,omitempty"`
	Shadows   []string `json:"shadows,omitempty"`
	Limits    []Limit  `json:"limits,omitempty"`
	Admitted  bool     `json:"admitted"` // as things stand now
}

// Missed is a rule that stands before the one that won, and why it did not match.
type Missed struct {
	Rule string `json:"rule"`
	Why  string `json:"why"`
}

// Limit is one limit of one bucket that the descriptor would take from. Numbers
// are whole tokens with up to three decimals.
type Limit struct {
	Entity    string `json:"entity"`
	Level     int    `json:"level"` // 0 the entity itself, 1 its parent, ...
	Resource  string `json:"resource"`
	Name      string `json:"limit"`
	Rate      string `json:"rate"`
	Source    string `json:"source"`
	Plan      string `json:"plan,omitempty"`
	Action    string `json:"action"` // take, look, charge, refund
	Amount    string `json:"amount"`
	Available string `json:"available"`
	Enough    bool   `json:"enough"`
}

// maxQuestion bounds the body of a request.
const maxQuestion = 1 << 20

// ServeHTTP answers POST /v1/explain.
func (e *Explainer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q Question
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxQuestion))
	dec.DisallowUnknownFields()
	err := dec.Decode(&q)
	if err == nil {
		var x *Explanation
		if x, err = e.Explain(r.Context(), &q); err == nil {
			writeJSON(w, http.StatusOK, x)
			return
		}
	}
	writeJSON(w, http.StatusBadRequest, map[string]string{
		"error": err.Error(),
		"hint":  `send {"domain": "…", "entries": [{"key": "…", "value": "…"}], "hits": 1}`,
	})
}

// Explain answers a question. It fails for one without a domain or entries.
func (e *Explainer) Explain(ctx context.Context, q *Question) (*Explanation, error) {
	if q.Domain == "" || len(q.Entries) == 0 {
		return nil, errors.New("a question needs a domain and at least one entry")
	}
	desc := descriptor.Descriptor{}
	for _, entry := range q.Entries {
		desc.Entries = append(desc.Entries, descriptor.Entry(entry))
	}
	if q.Hits != nil {
		desc.Hits, desc.HitsSet = *q.Hits, true
	}
	found := e.Rules().Explain(q.Domain, &desc)
	x := &Explanation{Domain: printable(q.Domain), Admitted: true}
	if found.Domain != nil {
		x.Namespace = found.Domain.Namespace()
	}
	if found.Rule != nil {
		x.Rule = found.Rule.Name()
	}
	for _, m := range found.Missed {
		x.Missed = append(x.Missed, Missed{Rule: m.Rule.Name(), Why: m.Why})
	}
	for _, s := range found.Shadows {
		x.Shadows = append(x.Shadows, s.Name())
	}
	outcome := found.Plan.Outcomes[0]
	x.Outcome, x.Why = outcomeName(outcome), outcome.Why
	if outcome.Deny || outcome.Kind == descriptor.Denied {
		x.Admitted = false
	}
	return x, e.look(ctx, &found, x)
}

func outcomeName(o descriptor.Outcome) string {
	switch o.Kind {
	case descriptor.Unmatched:
		return "unmatched"
	case descriptor.Unlimited:
		return "unlimited"
	case descriptor.Takes:
		return "takes"
	case descriptor.Settles:
		return "settles"
	case descriptor.Denied:
		return "denied"
	default:
		return "unknown"
	}
}

// look adds the limits that the plan takes from, with their balances.
func (e *Explainer) look(ctx context.Context, found *descriptor.Explanation, x *Explanation) error {
	takes := found.Plan.Request.Takes
	if len(takes) == 0 {
		return nil
	}
	req := found.Plan.Request
	req.Takes = make([]limiter.Take, len(takes))
	for i, t := range takes {
		t.Mode = limiter.Consume
		consume := t.Consume
		t.Consume = make([]limiter.Consumption, len(consume))
		for j, c := range consume {
			t.Consume[j].Limit = c.Limit
		}
		req.Takes[i] = t
	}
	var d limiter.Decision
	if err := e.Decider.Decide(ctx, e.Now(), &req, &d); err != nil {
		return fmt.Errorf("reading the balances: %w", err)
	}
	if d.Reason != limiter.ReasonNone && d.Reason != limiter.ReasonExhausted {
		x.Admitted, x.Why = false, d.Reason.String()
		if d.Reason == limiter.ReasonNotConfigured {
			x.Why += ": " + d.MissingLimit
		}
	}
	for _, s := range d.Statuses {
		l := limitOf(&takes[s.Take], &s)
		if s.Take < len(found.Plans) && s.Level == 0 {
			l.Plan = found.Plans[s.Take]
		}
		x.Limits = append(x.Limits, l)
		x.Admitted = x.Admitted && l.Enough
	}
	return nil
}

// limitOf describes one limit, and whether the take would find what it needs there.
func limitOf(t *limiter.Take, s *limiter.LimitStatus) Limit {
	l := Limit{
		Entity: printable(s.Entity), Level: s.Level, Resource: printable(s.Resource),
		Name: s.Limit.Name, Rate: s.Limit.String(), Source: s.Source.String(),
		Available: tokens(s.Available), Enough: true,
	}
	var amount int64
	for _, c := range t.Consume {
		if c.Limit == s.Limit.Name {
			amount += c.Amount
		}
	}
	l.Amount = tokens(amount)
	switch {
	case t.Mode == limiter.Charge:
		l.Action = "charge"
	case t.Mode == limiter.Refund:
		l.Action = "refund"
	case amount == 0:
		l.Action, l.Enough = "look", s.Available >= limiter.Milli
	default:
		l.Action, l.Enough = "take", s.Available >= amount
	}
	return l
}

// tokens writes millitokens as tokens, with decimals only where there are some.
func tokens(milli int64) string {
	sign := ""
	if milli < 0 {
		sign, milli = "-", -milli
	}
	s := sign + strconv.FormatInt(milli/limiter.Milli, 10)
	if rest := milli % limiter.Milli; rest != 0 {
		s += fmt.Sprintf(".%03d", rest)
	}
	return s
}

// printable returns plain text as it is and anything else quoted.
func printable(s string) string {
	if utf8.ValidString(s) {
		plain := true
		for _, r := range s {
			plain = plain && unicode.IsPrint(r)
		}
		if plain {
			return s
		}
	}
	return strconv.QuoteToASCII(s)
}
