package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// Decider decides requests; *limiter.Limiter is one.
type Decider interface {
	Decide(ctx context.Context, now time.Time, req *limiter.Request, d *limiter.Decision) error
}

// Explainer explains the decision about a descriptor. It takes from no bucket.
type Explainer struct {
	InForce func() *InForce // the configuration to explain
	Decider Decider
	Now     func() time.Time
	Shards  Sharder // nil = every bucket has one shard
	// Estimates are those of reservations without a number; nil = no earlier use is known.
	Estimates descriptor.Estimator
}

// InForce is the part of a configuration that decides, as one value.
type InForce struct {
	Rules *descriptor.Rules
	// UnmatchedDeny denies descriptors of domains that are not in the rules.
	UnmatchedDeny bool
	// Snapshot has the limits that belong to the rules; nil = the limits in force in the Decider.
	Snapshot *limiter.Snapshot
	// Limitador says that a file of limitador is among those in force.
	Limitador bool
	// Files are the settings for domains of files of envoyproxy/ratelimit.
	Files rls.FileOptions
}

// shadowWhy is why a denied call is admitted.
const shadowWhy = "envoyproxy.shadow_mode admits all calls; without it this one would be denied"

// admitsAll reports whether all calls of a domain are admitted; nil = the domain is unknown.
func (f *InForce) admitsAll(d *descriptor.Domain) bool {
	return f.Files.Shadow && d != nil && d.OfFile()
}

// Question is the body of a request to /v1/explain.
type Question struct {
	Domain  string  `json:"domain"`
	Entries []Entry `json:"entries"`
	Hits    *uint64 `json:"hits,omitempty"` // absent = 1; 0 = a peek
}

// Entry is one key and value of a descriptor.
type Entry struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Explanation has the rule that a descriptor matches, the amounts that it would take, and the
// buckets. Names that are not plain text are quoted as Go strings.
type Explanation struct {
	Domain    string   `json:"domain"`
	Namespace string   `json:"namespace,omitempty"`
	Outcome   string   `json:"outcome"` // unmatched, unlimited, takes, settles, denied, shadow; of a limitador file also "with the first descriptor"
	Why       string   `json:"why,omitempty"`
	Rule      string   `json:"rule,omitempty"`
	Lease     string   `json:"lease,omitempty"` // the rule's token leases; absent = auto
	Missed    []Missed `json:"missed,omitempty"`
	Shadows   []Shadow `json:"shadows,omitempty"`
	Limits    []Limit  `json:"limits,omitempty"`
	Admitted  bool     `json:"admitted"` // by the present state
	// RetryAfter is a duration: after it the same request is admitted if no other takes in the
	// meantime. It is never if it is never admitted, and absent if it is admitted now or the time
	// is unknown. It is "when one in flight ends" if that is all that is missing.
	RetryAfter string `json:"retry_after,omitempty"`
	// OnUnavailable is the policy that would answer if the store were unavailable: allow, deny or
	// local.
	OnUnavailable string `json:"on_unavailable,omitempty"`
	Late          bool   `json:"late,omitempty"`     // limits and balances are those last seen, as the store is slow
	Fallback      string `json:"fallback,omitempty"` // the policy that answers, as the store is unavailable

	// Unlisted are values of resources that are not in the rule's list, so that another resource
	// replaces them.
	Unlisted []string `json:"unlisted,omitempty"`

	Nearest    *Missed  `json:"nearest,omitempty"`      // the rule with the fewest differences when none matches
	Domains    []string `json:"domains,omitempty"`      // all domains, when the domain is unknown; at most 100
	DidYouMean string   `json:"did_you_mean,omitempty"` // a domain with a similar name
}

// Shadow is a rule in shadow mode that matches, or the shadow limits of the rule in force, and the decision
// if they were in force.
type Shadow struct {
	Rule      string  `json:"rule,omitempty"` // absent for shadow limits
	WouldDeny bool    `json:"would_deny"`
	Why       string  `json:"why,omitempty"`
	Limits    []Limit `json:"limits,omitempty"`
}

// maxDomains is the most domains that an explanation lists.
const maxDomains = 100

// Missed is a rule before the one that matched, with the reason why it did not match.
type Missed struct {
	Rule string `json:"rule,omitempty"` // absent for descriptors of envoyproxy/ratelimit
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
	Enough    bool   `json:"enough"` // for everything that the request takes of it
	// RetryAfter is the time until there is enough, in the form of Explanation.RetryAfter.
	RetryAfter string `json:"retry_after,omitempty"`
	// Shards are those of the bucket; absent where every bucket has one shard.
	Shards *Shards `json:"shards,omitempty"`
}

// maxQuestion bounds the body of a request, in bytes. It has one descriptor, and Envoy accepts 60
// KiB of headers.
const maxQuestion = 64 << 10

// ServeHTTP answers POST /v1/explain.
func (e *Explainer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x, err := e.answer(r.Context(), http.MaxBytesReader(w, r.Body, maxQuestion))
	if err == nil {
		writeJSON(w, http.StatusOK, x)
		return
	}
	tooLarge, isTooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case errors.Is(err, limiter.ErrClosed): // the service is stopping
		writeProblem(w, http.StatusServiceUnavailable, err.Error())
	case isTooLarge:
		WriteProblem(w, api.Problem{Type: api.TooLarge, Status: http.StatusRequestEntityTooLarge, Detail: fmt.Sprintf("the body has more than %d bytes", tooLarge.Limit)})
	default:
		writeProblem(w, http.StatusBadRequest, err.Error()+questionForm)
	}
}

// questionForm shows the form of a question.
const questionForm = `; send {"domain": "…", "entries": [{"key": "…", "value": "…"}], "hits": 1}, or a RateLimitRequest with its descriptors`

// answer reads a question, or a whole call, and explains it.
func (e *Explainer) answer(ctx context.Context, body io.Reader) (any, error) {
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) == nil && members["descriptors"] != nil {
		call, err := rls.ParseCall(text)
		if err != nil {
			return nil, err
		}
		return e.ExplainCall(ctx, call)
	}
	var q Question
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&q); err != nil {
		return nil, err
	}
	return e.Explain(ctx, &q)
}

// Explain explains a descriptor. It fails without a domain or entries.
func (e *Explainer) Explain(ctx context.Context, q *Question) (*Explanation, error) {
	if q.Domain == "" || len(q.Entries) == 0 {
		return nil, errors.New("the request needs a domain and at least one entry")
	}
	desc := descriptor.Descriptor{}
	for _, entry := range q.Entries {
		desc.Entries = append(desc.Entries, descriptor.Entry(entry))
	}
	if q.Hits != nil {
		desc.Hits, desc.HitsSet = *q.Hits, true
	}
	cfg := e.InForce()
	found := cfg.Rules.ExplainBy(e.Estimates, q.Domain, &desc)
	found.Plan.Request.Snapshot = cfg.Snapshot
	outcome := found.Plan.Outcomes[0]
	x := describe(cfg, q.Domain, &found, &outcome)
	for _, u := range found.Plan.Unlisted {
		x.Unlisted = append(x.Unlisted, printable(u.Value))
	}
	if err := e.peek(ctx, &found.Plan.Request, found.Plans, outcome.Answers || outcome.Peek, x); err != nil {
		return nil, err
	}
	if !x.Admitted && cfg.admitsAll(found.Domain) {
		x.Admitted, x.Why, x.RetryAfter = true, shadowWhy, ""
	}
	return x, e.shadows(ctx, cfg, found.Plan.Shadows, x)
}

// describe returns the rule that a descriptor matches, and its outcome.
func describe(cfg *InForce, domain string, found *descriptor.Explanation, outcome *descriptor.Outcome) *Explanation {
	x := &Explanation{Domain: printable(domain), Admitted: true, Outcome: outcomeName(*outcome), Why: outcome.Why}
	if found.Domain != nil {
		x.Namespace = found.Domain.Namespace()
	}
	if found.Rule != nil {
		x.Rule = found.Rule.Name()
		if lease := found.Rule.Lease(); lease != (limiter.LeasePolicy{}) {
			x.Lease = lease.String()
		}
	}
	for _, m := range found.Missed {
		x.Missed = append(x.Missed, Missed{Rule: m.Rule.Name(), Why: m.Why})
	}
	if outcome.Deny || outcome.Kind == descriptor.Denied || found.Domain == nil && cfg.UnmatchedDeny {
		x.Admitted = false
	}
	if found.Rule == nil && outcome.Kind != descriptor.Beside {
		x.suggest(cfg.Rules, domain, found)
	}
	return x
}

// suggest adds the closest names to those of a descriptor without a rule.
func (x *Explanation) suggest(rules *descriptor.Rules, domain string, found *descriptor.Explanation) {
	switch {
	case found.Domain == nil:
		for _, d := range rules.Domains()[:min(len(rules.Domains()), maxDomains)] {
			x.Domains = append(x.Domains, printable(d.Name()))
		}
		if near := rules.NearestDomain(domain); near != "" {
			x.DidYouMean = printable(near)
		}
	case found.Nearest.Why != "":
		x.Nearest = &Missed{Why: found.Nearest.Why}
		if found.Nearest.Rule != nil {
			x.Nearest.Rule = found.Nearest.Rule.Name()
		}
	}
}

// shadows adds the decisions that rules in shadow mode would make.
func (e *Explainer) shadows(ctx context.Context, cfg *InForce, shadows []descriptor.Shadow, x *Explanation) error {
	for i := range shadows {
		s := &shadows[i]
		s.Request.Snapshot = cfg.Snapshot
		of := Explanation{Admitted: s.Why == "", Why: s.Why}
		if err := e.peek(ctx, &s.Request, nil, s.Answers || s.Peek, &of); err != nil {
			return err
		}
		x.Fallback, x.Late = cmp.Or(x.Fallback, of.Fallback), x.Late || of.Late
		x.Shadows = append(x.Shadows, Shadow{Rule: s.Rule.Name(), WouldDeny: !of.Admitted, Why: of.Why, Limits: of.Limits})
	}
	return nil
}

func outcomeName(o descriptor.Outcome) string {
	if o.Rule != nil && o.Rule.Shadow() { // a limit of envoyproxy/ratelimit in shadow_mode
		return "shadow"
	}
	switch o.Kind {
	case descriptor.Unmatched:
		return "unmatched"
	case descriptor.Unlimited:
		return "unlimited"
	case descriptor.Takes:
		return "takes"
	case descriptor.Exempt:
		return "exempt"
	case descriptor.Settles:
		return "settles"
	case descriptor.Denied:
		return "denied"
	case descriptor.Beside:
		return "with the first descriptor"
	default:
		return "unknown"
	}
}
