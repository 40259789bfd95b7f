// Package limitador is the HTTP API of limitador, the rate limit service of Kuadrant.
package limitador

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

const (
	// maxBody bounds a request, in bytes: 1 MiB.
	maxBody = 1 << 20
	// listedCounters bounds the counters that one answer looks at.
	listedCounters = 1000
)

// API answers /status, /limits/NAMESPACE, /counters/NAMESPACE, /check, /report and /check_and_report. It asks for no
// credential. All members are required.
type API struct {
	Ask     func(ctx context.Context, d *rls.Direct) (*rls.Reply, error)
	Metered func(body io.Reader) (read io.Reader, end func()) // bounds the memory of all bodies
	InForce func() InForce
	Used    func() []rls.Counter // the counters of this process, the one used last first
	Decider rls.Decider
	Now     func() time.Time
}

// InForce is the part of a configuration that answers need.
type InForce struct {
	On       bool // without it every path is 404
	Counters bool // without it /counters is 404
	Rules    *descriptor.Rules
	Snapshot *limiter.Snapshot // nil = the limits in force in the Decider
}

// Handler returns the handler of the paths.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { write(w, nil) })
	mux.HandleFunc("GET /limits/{namespace...}", a.limits)
	mux.HandleFunc("GET /counters/{namespace...}", a.counters)
	for path, use := range map[string]descriptor.Use{"/check": descriptor.UseCheck, "/report": descriptor.UseReport, "/check_and_report": descriptor.UseTake} {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { a.call(w, r, use) })
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.InForce().On {
			http.NotFound(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func write(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // an error says that the client has gone
}

func refuse(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": text}) // likewise
}

// request is the body of a call.
type request struct {
	Namespace string            `json:"namespace"`
	Values    map[string]string `json:"values"`
	Delta     *uint64           `json:"delta"`
	Headers   *string           `json:"response_headers"` // not used: headers are those of the configuration
}

// call answers a check, a report, or both.
func (a *API) call(w http.ResponseWriter, r *http.Request, use descriptor.Use) {
	var body request
	text, done := a.Metered(http.MaxBytesReader(w, r.Body, maxBody))
	defer done()
	err := json.NewDecoder(text).Decode(&body)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) || errors.Is(err, rls.ErrLarge) {
		refuse(w, http.StatusRequestEntityTooLarge, err.Error())
		return
	}
	if err == nil && (body.Delta == nil || body.Values == nil) {
		err = errors.New("values or delta is missing")
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, `not {"namespace": "…", "values": {"…": "…"}, "delta": 1}: `+err.Error())
		return
	}
	d := rls.Direct{Domain: body.Namespace, Use: use, Hits: *body.Delta}
	if d.Hits == 0 { // it takes nothing, as a reservation of nothing
		d.Use = descriptor.UseReserve
	}
	for key, value := range body.Values {
		d.Entries = append(d.Entries, descriptor.Entry{Key: key, Value: value})
	}
	reply, err := a.Ask(r.Context(), &d)
	switch {
	case status.Code(err) == codes.PermissionDenied:
		refuse(w, http.StatusForbidden, status.Convert(err).Message())
		return
	case err != nil:
		refuse(w, http.StatusBadRequest, status.Convert(err).Message())
		return
	}
	for _, h := range reply.Headers {
		w.Header().Add(h[0], h[1])
	}
	if reply.Denied && use != descriptor.UseReport {
		http.Error(w, "Too many requests", http.StatusTooManyRequests)
		return
	}
	write(w, nil)
}

// limit is a limit in answers.
type limit struct {
	ID         *string  `json:"id"`
	Namespace  string   `json:"namespace"`
	MaxValue   int64    `json:"max_value"`
	Seconds    int64    `json:"seconds"`
	Name       *string  `json:"name"`
	Conditions []string `json:"conditions"`
	Variables  []string `json:"variables"`
}

func limitOf(rule *descriptor.Rule) limit {
	spec, _ := descriptor.CallLimit(rule)
	optional := func(text string) *string {
		if text == "" {
			return nil
		}
		return &text
	}
	return limit{
		ID: optional(spec.ID), Namespace: rule.Domain().Name(), MaxValue: spec.MaxValue, Seconds: spec.Seconds, Name: optional(spec.Name),
		Conditions: append([]string{}, spec.Conditions...), Variables: append([]string{}, spec.Variables...),
	}
}

// limits answers with the limits of a namespace.
func (a *API) limits(w http.ResponseWriter, r *http.Request) {
	all := []limit{}
	if d, ok := a.InForce().Rules.Domain(r.PathValue("namespace")); ok && d.OfLimits() {
		for _, rule := range d.Rules() {
			all = append(all, limitOf(rule))
		}
	}
	write(w, all)
}

// counter is a counter in answers.
type counter struct {
	Limit     limit             `json:"limit"`
	Variables map[string]string `json:"set_variables"`
	Remaining int64             `json:"remaining"`
	Expires   int64             `json:"expires_in_seconds"` // until the bucket is full
}

// counters answers with those of the 1,000 counters of a namespace that this process used last that are not full.
func (a *API) counters(w http.ResponseWriter, r *http.Request) {
	cfg, list := a.InForce(), []counter{}
	if !cfg.Counters {
		http.NotFound(w, r)
		return
	}
	d, ok := cfg.Rules.Domain(r.PathValue("namespace"))
	if !ok || !d.OfLimits() {
		write(w, list)
		return
	}
	rules := make(map[string]*descriptor.Rule, len(d.Rules()))
	for _, rule := range d.Rules() {
		rules[rule.Name()] = rule
	}
	looks := 0
	for _, used := range a.Used() {
		rule := rules[used.Rule]
		if used.Domain != d.Name() || rule == nil {
			continue
		}
		if looks++; looks > listedCounters {
			break
		}
		more, err := a.look(r.Context(), cfg.Snapshot, rule, used.Entity)
		if err != nil {
			http.Error(w, "Internal server error", http.StatusInternalServerError)
			return
		}
		list = append(list, more...)
	}
	write(w, list)
}

// look returns the counter of an entity, none if it is full.
func (a *API) look(ctx context.Context, snapshot *limiter.Snapshot, rule *descriptor.Rule, entity string) (found []counter, err error) {
	take, variables := descriptor.Counter(rule, entity)
	req := limiter.Request{Namespace: rule.Domain().Namespace(), Takes: []limiter.Take{take}, Snapshot: snapshot}
	var decision limiter.Decision
	if err := a.Decider.Decide(ctx, a.Now(), &req, &decision); err != nil {
		return nil, err
	}
	if decision.Policy != limiter.Unset {
		return nil, limiter.ErrUnavailable
	}
	for i := range decision.Statuses {
		s := &decision.Statuses[i]
		if s.Available >= s.Limit.Capacity*limiter.Milli {
			continue
		}
		seconds := int64((max(s.Reset, time.Second)-1)/time.Second) + 1 // rounded up
		found = append(found, counter{Limit: limitOf(rule), Variables: variables, Remaining: max(0, s.Available/limiter.Milli), Expires: seconds})
	}
	return found, nil
}
