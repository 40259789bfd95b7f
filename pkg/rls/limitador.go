package rls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"google.golang.org/grpc/status"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// maxLimitadorBody bounds a request, in bytes: 1 MiB.
	maxLimitadorBody = 1 << 20
	// listedCounters bounds the counters that one answer looks at.
	listedCounters = 1000
)

// LimitadorAPI is the HTTP API of limitador, the rate limit service of Kuadrant. It answers /status, /limits/NAMESPACE,
// /counters/NAMESPACE, /check, /report and /check_and_report. It asks for no credential. All members are required.
type LimitadorAPI struct {
	Ask     func(ctx context.Context, d *Direct) (*Reply, error)
	Metered func(body io.Reader) (read io.Reader, end func()) // bounds the memory of all bodies
	InForce func() LimitadorInForce
	Used    func() []Counter // the counters of this process, the one used last first
	Decider Decider
	Now     func() time.Time
}

// LimitadorInForce is the part of a configuration that answers need.
type LimitadorInForce struct {
	On       bool // without it every path is 404
	Counters bool // without it /counters is 404
	Rules    *descriptor.Rules
	Snapshot *limiter.Snapshot // nil = the limits in force in the Decider
}

// Handler returns the handler of the paths.
func (a *LimitadorAPI) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { limitadorWrite(w, nil) })
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

func limitadorWrite(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // an error says that the client has gone
}

func limitadorRefuse(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": text}) // likewise
}

// limitadorRequest is the body of a call.
type limitadorRequest struct {
	Namespace string            `json:"namespace"`
	Values    map[string]string `json:"values"`
	Delta     *uint64           `json:"delta"`
	Headers   *string           `json:"response_headers"` // not used: headers are those of the configuration
}

// call answers a check, a report, or both.
func (a *LimitadorAPI) call(w http.ResponseWriter, r *http.Request, use descriptor.Use) {
	var body limitadorRequest
	text, done := a.Metered(http.MaxBytesReader(w, r.Body, maxLimitadorBody))
	defer done()
	err := json.NewDecoder(text).Decode(&body)
	if err == nil && use == descriptor.UseReport && len(body.Values) > MaxEntries { // a check is denied
		err = fmt.Errorf("%w: nothing is reported of more than %d values", ErrLarge, MaxEntries)
	}
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) || errors.Is(err, ErrLarge) {
		limitadorRefuse(w, http.StatusRequestEntityTooLarge, err.Error())
		return
	}
	if err == nil && (body.Delta == nil || body.Values == nil) {
		err = errors.New("values or delta is missing")
	}
	if err != nil {
		limitadorRefuse(w, http.StatusBadRequest, `not {"namespace": "…", "values": {"…": "…"}, "delta": 1}: `+err.Error())
		return
	}
	d := Direct{Domain: body.Namespace, Use: use, Hits: *body.Delta}
	if d.Hits == 0 { // it takes nothing, as a reservation of nothing
		d.Use = descriptor.UseReserve
	}
	for key, value := range body.Values {
		d.Entries = append(d.Entries, descriptor.Entry{Key: key, Value: value})
	}
	reply, err := a.Ask(r.Context(), &d)
	if err != nil {
		limitadorRefuse(w, refusalStatus(err), status.Convert(err).Message())
		return
	}
	for _, h := range reply.Headers {
		w.Header().Add(h[0], h[1])
	}
	if reply.Denied && use != descriptor.UseReport {
		http.Error(w, "Too many requests", http.StatusTooManyRequests)
		return
	}
	limitadorWrite(w, nil)
}

// limitadorLimit is a limit in answers.
type limitadorLimit struct {
	ID         *string  `json:"id"`
	Namespace  string   `json:"namespace"`
	MaxValue   int64    `json:"max_value"`
	Seconds    int64    `json:"seconds"`
	Name       *string  `json:"name"`
	Conditions []string `json:"conditions"`
	Variables  []string `json:"variables"`
}

func limitadorLimitOf(rule *descriptor.Rule) limitadorLimit {
	spec, _ := descriptor.CallLimit(rule)
	optional := func(text string) *string {
		if text == "" {
			return nil
		}
		return &text
	}
	return limitadorLimit{
		ID: optional(spec.ID), Namespace: rule.Domain().Name(), MaxValue: spec.MaxValue, Seconds: spec.Seconds, Name: optional(spec.Name),
		Conditions: append([]string{}, spec.Conditions...), Variables: append([]string{}, spec.Variables...),
	}
}

// limits answers with the limits of a namespace.
func (a *LimitadorAPI) limits(w http.ResponseWriter, r *http.Request) {
	all := []limitadorLimit{}
	if d, ok := a.InForce().Rules.Domain(r.PathValue("namespace")); ok && d.OfLimits() {
		for _, rule := range d.Rules() {
			all = append(all, limitadorLimitOf(rule))
		}
	}
	limitadorWrite(w, all)
}

// limitadorCounter is a counter in answers.
type limitadorCounter struct {
	Limit     limitadorLimit    `json:"limit"`
	Variables map[string]string `json:"set_variables"`
	Remaining int64             `json:"remaining"`
	Expires   int64             `json:"expires_in_seconds"` // until the bucket is full
}

// counters answers with those of the 1,000 counters of a namespace that this process used last that are not full.
func (a *LimitadorAPI) counters(w http.ResponseWriter, r *http.Request) {
	cfg, list := a.InForce(), []limitadorCounter{}
	if !cfg.Counters {
		http.NotFound(w, r)
		return
	}
	d, ok := cfg.Rules.Domain(r.PathValue("namespace"))
	if !ok || !d.OfLimits() {
		limitadorWrite(w, list)
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
	limitadorWrite(w, list)
}

// look returns the counter of an entity, none if it is full.
func (a *LimitadorAPI) look(ctx context.Context, snapshot *limiter.Snapshot, rule *descriptor.Rule, entity string) (found []limitadorCounter, err error) {
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
		found = append(found, limitadorCounter{
			Limit: limitadorLimitOf(rule), Variables: variables, Remaining: wholeTokens(s.Available), Expires: max(1, ceilSeconds(s.Reset)),
		})
	}
	return found, nil
}
