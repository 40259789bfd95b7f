package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/reservation"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// testResult is the outcome of a case.
type testResult struct {
	Case  *testCase
	Calls int          // that were made
	Fail  *testFailure // nil = every answer was as expected
}

// testFailure is the first call of a case whose answer is not as expected. The case ends with it.
type testFailure struct {
	Line  int           // of the step
	Call  string        // for people
	Nth   int           // which of the repetitions, from 1
	Of    int           // number of repetitions
	At    time.Duration // since the case began
	Wrong []mismatch    // none where the call has no answer
	Error string        // why the call has no answer
}

// mismatch is a member of an answer that is not as expected.
type mismatch struct {
	Member, Want, Got string
}

// reservationPlaceholder stands for the ID of the last reservation of the case, in a call.
const reservationPlaceholder = "${reservation}"

// testStart is when a case begins, unless it says when.
func testStart() time.Time { return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) }

// Run runs the cases of a file, one after the other. It fails where no service can be made, or the context ends; then
// it returns the results until then.
func (f *testFile) Run(ctx context.Context, cfg *config.Config) ([]testResult, error) {
	results := make([]testResult, 0, len(f.Cases))
	for i := range f.Cases {
		r, err := runTestCase(ctx, cfg, &f.Cases[i])
		if err != nil {
			return results, fmt.Errorf("%s:%d: %w", f.Name, f.Cases[i].Line, err)
		}
		results = append(results, r)
	}
	return results, nil
}

// testPlayer is a service in memory, and its time. The store asks for the time in the background too.
type testPlayer struct {
	start       time.Time
	advanced    atomic.Int64 // nanoseconds since the start
	handler     http.Handler
	rules       *descriptor.Rules
	reservation string // ID of the last one
}

// at returns how much time has passed since the start.
func (p *testPlayer) at() time.Duration { return time.Duration(p.advanced.Load()) }

func runTestCase(ctx context.Context, cfg *config.Config, c *testCase) (r testResult, err error) {
	p := &testPlayer{start: testStart()}
	if !c.Begin.IsZero() {
		p.start = c.Begin
	}
	stop, err := p.open(ctx, cfg)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	r.Case = c
	for i := range c.Steps {
		if r.Fail, err = p.step(ctx, &c.Steps[i], &r.Calls); r.Fail != nil || err != nil {
			return r, err
		}
	}
	return r, nil
}

// open makes the service of a configuration. stop ends it.
func (p *testPlayer) open(ctx context.Context, cfg *config.Config) (stop func() error, err error) {
	clock := func() time.Time { return p.start.Add(p.at()) }
	store := embedded.New(embedded.Config{Now: clock})
	stop = func() error { return store.Close(context.WithoutCancel(ctx)) }
	defer func() {
		if err != nil {
			err = errors.Join(err, stop())
		}
	}()
	l, err := limiter.New(limiter.Config{Store: store})
	if err != nil {
		return stop, err
	}
	if err := l.SetStatic(ctx, cfg.Static); err != nil {
		return stop, err
	}
	books, err := reservation.NewLedger(reservation.LedgerConfig{Limiter: l, Local: true, Now: clock}) //nolint:contextcheck // it ends with the case
	if err != nil {
		return stop, err
	}
	ring, err := testKeyring(cfg)
	if err != nil {
		return stop, err
	}
	service, err := rls.New(rls.Config{Decider: books, Settler: books, Now: clock, Options: rls.Options{
		Keyring: ring, Lifetime: cfg.Reservation.TTL, UnmatchedDeny: cfg.DenyUnknown, Body: cfg.Body,
		OnUnavailable: cfg.Static.OnUnavailable, JSON: rls.JSONOptions{Refunds: true, Charges: true},
		Files: rls.FileOptions{Shadow: cfg.Envoyproxy.Shadow, Quota: cfg.Envoyproxy.Quota}, // cases compare the metadata of rules
	}})
	if err != nil {
		return stop, err
	}
	service.Reload(cfg.Rules, nil)
	p.rules = cfg.Rules
	p.handler = service.JSONHandler()
	return func() error { return errors.Join(books.Close(ctx), store.Close(context.WithoutCancel(ctx))) }, nil
}

// testKeyring seals the IDs of reservations, which no other process sees.
func testKeyring(cfg *config.Config) (*reservation.Keyring, error) {
	if len(cfg.Reservation.Keys) > 0 {
		return reservation.NewKeyring(cfg.Reservation.Keys...)
	}
	return reservation.NewKeyring(bytes.Repeat([]byte{1}, 32))
}

// step moves time on, and makes the calls of a step until one has another answer.
func (p *testPlayer) step(ctx context.Context, s *testStep, calls *int) (*testFailure, error) {
	p.advanced.Add(int64(s.Advance))
	for n := 1; n <= s.Repeat && s.Call != ""; n++ {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		fail := testFailure{Line: s.Line, Call: s.Text, Nth: n, Of: s.Repeat, At: p.at()}
		got, err := p.call(ctx, s.Call)
		if err != nil {
			fail.Error = err.Error()
			return &fail, nil //nolint:nilerr // the case fails, and not the run
		}
		*calls++
		if fail.Wrong = s.Expect.compare(got, n == s.Repeat); len(fail.Wrong) > 0 {
			return &fail, nil
		}
	}
	return nil, nil //nolint:nilnil // nil is no failure
}

// answerRecorder keeps an answer.
type answerRecorder struct {
	header http.Header
	body   bytes.Buffer
	code   int
}

func (r *answerRecorder) Header() http.Header            { return r.header }
func (r *answerRecorder) Write(text []byte) (int, error) { return r.body.Write(text) }
func (r *answerRecorder) WriteHeader(code int)           { r.code = code }

// testAnswer is a RateLimitResponse, with its status over HTTP and the rules of its call.
type testAnswer struct {
	Status      int           `json:"-"`
	Rules       matchingRules `json:"-"`
	Error       string        `json:"error"` // of a refused call
	OverallCode string        `json:"overallCode"`
	Statuses    []struct {
		Code           string `json:"code"`
		LimitRemaining int64  `json:"limitRemaining"`
		CurrentLimit   *struct {
			Name string `json:"name"`
		} `json:"currentLimit"`
	} `json:"statuses"`
	Metadata struct {
		Reason      string `json:"reason"`
		Rule        string `json:"rule"`
		Entity      string `json:"entity"`
		Limit       string `json:"limit"`
		RetryAfter  int64  `json:"retry_after"` // seconds
		Reservation string `json:"reservation_id"`
		Settlements []struct {
			Result string `json:"result"`
		} `json:"settlements"`
		Shadow []struct {
			Rule string `json:"rule"`
		} `json:"shadow"` // rules that would deny: in shadow mode, or by a shadow limit
	} `json:"dynamicMetadata"`
}

// call makes a call at the time of the player.
func (p *testPlayer) call(ctx context.Context, text string) (*testAnswer, error) {
	if strings.Contains(text, reservationPlaceholder) {
		if p.reservation == "" {
			return nil, fmt.Errorf("the call has %s, and no call before it made a reservation", reservationPlaceholder)
		}
		text = strings.ReplaceAll(text, reservationPlaceholder, p.reservation)
	}
	req := (&http.Request{
		Method: http.MethodPost, URL: &url.URL{Path: "/json"}, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(text)),
	}).WithContext(ctx)
	w := &answerRecorder{header: make(http.Header), code: http.StatusOK}
	p.handler.ServeHTTP(w, req)
	a := &testAnswer{Status: w.code}
	if err := json.Unmarshal(w.body.Bytes(), a); err != nil {
		return nil, fmt.Errorf("the answer %s: %w", w.body.Bytes(), err)
	}
	if a.OverallCode == "" { // whatever its status: a rule may give a denial any
		return nil, fmt.Errorf("the service refuses the call with status %d: %s", w.code, a.Error)
	}
	var err error
	if a.Rules, err = p.matching(text); err != nil {
		return nil, err
	}
	if a.Metadata.Reservation != "" {
		p.reservation = a.Metadata.Reservation
	}
	return a, nil
}
