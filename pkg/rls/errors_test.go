package rls_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// deciderFunc is a Decider made of a function.
type deciderFunc func(ctx context.Context, now time.Time, req *limiter.Request, d *limiter.Decision) error

func (f deciderFunc) Decide(ctx context.Context, now time.Time, req *limiter.Request, d *limiter.Decision) error {
	return f(ctx, now, req, d)
}

// No error of a decision ends the call with an error.
func TestTroubleIsAnsweredByPolicy(t *testing.T) {
	failing := func(err error) deciderFunc {
		return func(context.Context, time.Time, *limiter.Request, *limiter.Decision) error { return err }
	}
	degraded := func(p limiter.Policy, admitted bool, reason limiter.Reason) deciderFunc {
		return func(_ context.Context, _ time.Time, _ *limiter.Request, d *limiter.Decision) error {
			*d = limiter.Decision{Admitted: admitted, Reason: reason, Policy: p, Unavailable: limiter.ErrUnavailable}
			return nil
		}
	}
	const (
		allowed = `{"overallCode":"OK","statuses":[{"code":"OK"}],"dynamicMetadata":{"degraded":"allow"}}`
		denied  = `{"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT"}],"dynamicMetadata":{"reason":%q,"domain":"llm","rule":"requests"%s}}`
		deny    = `,"degraded":"deny"`
	)
	tests := []struct {
		name    string
		decider deciderFunc
		policy  limiter.Policy
		want    string
	}{
		{"closed", failing(limiter.ErrClosed), limiter.Unset, allowed},
		{"closed, deny", failing(limiter.ErrClosed), limiter.Deny, fmt.Sprintf(denied, "failed", deny)},
		{"closed, local", failing(limiter.ErrClosed), limiter.Local, fmt.Sprintf(denied, "failed", deny)},
		{"unknown error", failing(errors.New("odd")), limiter.Allow, allowed},
		{"invalid is no way around", failing(fmt.Errorf("%w: odd", limiter.ErrInvalid)), limiter.Allow, fmt.Sprintf(denied, "invalid", "")},
		{"store away, allow", degraded(limiter.Allow, true, limiter.ReasonNone), limiter.Unset, allowed},
		{"store away, deny", degraded(limiter.Deny, false, limiter.ReasonUnavailable), limiter.Unset, fmt.Sprintf(denied, "store_unavailable", deny)},
		{"chain too long", degraded(limiter.Unset, false, limiter.ReasonHierarchy), limiter.Unset, fmt.Sprintf(denied, "hierarchy_too_deep", "")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := newEnv(t, func(c *rls.Config) { c.Decider, c.OnUnavailable = tt.decider, tt.policy })
			e.run(t, []step{{ask: descriptor1(``, "api_key", "a", "model", "m"), want: tt.want}})
		})
	}
}

// A panic costs one answer, which the policy gives.
func TestPanic(t *testing.T) {
	for policy, want := range map[limiter.Policy]string{
		limiter.Allow: `{"overallCode":"OK","dynamicMetadata":{"degraded":"allow"}}`,
		limiter.Deny:  `{"overallCode":"OVER_LIMIT","dynamicMetadata":{"reason":"failed","degraded":"deny"}}`,
	} {
		e := newEnv(t, func(c *rls.Config) {
			decider := newLimiter(t, c.Now)
			c.OnUnavailable = policy
			c.Decider = deciderFunc(func(ctx context.Context, now time.Time, req *limiter.Request, d *limiter.Decision) error {
				if req.Takes[0].Entity == "key/bad" {
					panic("odd")
				}
				return decider.Decide(ctx, now, req, d)
			})
		})
		e.run(t, []step{
			{ask: descriptor1(``, "api_key", "bad", "model", "m"), want: want},
			{ask: descriptor1(``, "api_key", "good", "model", "m"), want: ok("rpm", 10, 9, "6s")},
		})
	}
}

// gate is a Decider whose calls wait until it opens.
type gate struct {
	rls.Decider
	entered chan struct{}
	open    chan struct{}
}

func (g *gate) Decide(ctx context.Context, now time.Time, req *limiter.Request, d *limiter.Decision) error {
	g.entered <- struct{}{}
	<-g.open
	return g.Decider.Decide(ctx, now, req, d)
}

// A call beyond MaxInFlight is answered at once, by policy.
func TestInFlightBound(t *testing.T) {
	g := &gate{entered: make(chan struct{}), open: make(chan struct{})}
	e := newEnv(t, func(c *rls.Config) {
		g.Decider = newLimiter(t, c.Now)
		c.Decider, c.MaxInFlight, c.OnUnavailable = g, 2, limiter.Deny
	})
	request := fromJSON(t, descriptor1(``, "api_key", "a", "model", "m"), &rlsv3.RateLimitRequest{})
	answers := make(chan *rlsv3.RateLimitResponse, 2)
	for range 2 {
		go func() {
			got, err := rlsv3.NewRateLimitServiceClient(e.conn).ShouldRateLimit(t.Context(), request)
			if err != nil {
				t.Error(err)
			}
			answers <- got
		}()
		<-g.entered
	}
	e.run(t, []step{{ask: descriptor1(``, "api_key", "a", "model", "m"), want: `{"overallCode":"OVER_LIMIT","dynamicMetadata":{"reason":"overloaded","degraded":"deny"}}`}})
	close(g.open)
	for range 2 {
		if got := <-answers; got.GetOverallCode() != rlsv3.RateLimitResponse_OK {
			t.Errorf("a call within the bound got %v, want OK", got)
		}
	}
}

// Envoy gives up after 20 ms and cancels. The charge is booked all the same.
func TestChargeOutlivesItsCaller(t *testing.T) {
	g := &gate{entered: make(chan struct{}), open: make(chan struct{})}
	done := make(chan error, 2)
	e := newEnv(t, func(c *rls.Config) {
		decider := newLimiter(t, c.Now)
		g.Decider = deciderFunc(func(ctx context.Context, now time.Time, req *limiter.Request, d *limiter.Decision) error {
			err := decider.Decide(ctx, now, req, d)
			done <- errors.Join(err, ctx.Err())
			return err
		})
		c.Decider = g
	})
	charge := fromJSON(t, descriptor1(`"hitsAddend":"400"`, "api_key", "a", "model", "m", "meter", "tokens"), &rlsv3.RateLimitRequest{})
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := rlsv3.NewRateLimitServiceClient(e.conn).ShouldRateLimit(ctx, charge)
		gone <- err
	}()
	<-g.entered
	cancel()
	if err := <-gone; err == nil {
		t.Fatal("a cancelled call got an answer")
	}
	close(g.open)
	if err := <-done; err != nil {
		t.Fatalf("the charge ended with %v", err)
	}
	go func() { <-g.entered }()
	e.run(t, []step{{ask: descriptor1(`"hitsAddend":"0"`, "api_key", "a", "model", "m", "meter", "tokens"), want: ok("tpm", 1000, 600, "24s")}})
}

// A call of charges and refunds only is never denied, even if they are lost.
func TestBookingsAreNeverDenied(t *testing.T) {
	charge := descriptor1(`"hitsAddend":"400"`, "api_key", "a", "model", "m", "meter", "tokens")
	refund := descriptor1(`"hitsAddend":"4","isNegativeHits":true`, "ghost", "g")
	lost := newEnv(t, func(c *rls.Config) {
		c.OnUnavailable = limiter.Deny
		c.Decider = deciderFunc(func(_ context.Context, _ time.Time, _ *limiter.Request, d *limiter.Decision) error {
			*d = limiter.Decision{Reason: limiter.ReasonUnavailable, Policy: limiter.Deny}
			return nil
		})
	})
	lost.run(t, []step{{ask: charge, want: `{"overallCode":"OK","statuses":[{"code":"OK"}],"dynamicMetadata":{"degraded":"deny"}}`}})
	if got, want := series(t, lost.registry)[`ratelimit_charges_total{domain="llm",kind="charge",result="lost",rule="tokens"}`], 1.0; got != want {
		t.Errorf("lost charges: got %v, want %v", got, want)
	}
	newEnv(t, nil).run(t, []step{{ask: refund, want: `{"overallCode":"OK","statuses":[{"code":"OK"}]}`}})
}

// A charge under a missing plan or limit cannot be booked. It is counted as lost. It denies neither
// the call nor its other descriptors.
func TestBookingsWithoutALimitDenyNobody(t *testing.T) {
	e := newEnv(t, nil)
	planless := descriptorJSON(`"hitsAddend":"4","isNegativeHits":true`, "plan", "none")
	limitless := descriptorJSON(`"hitsAddend":"4","isNegativeHits":true`, "ghost", "g")
	beside := descriptorJSON(``, "api_key", "a", "model", "m")
	call := func(descriptors ...string) string {
		return fmt.Sprintf(`{"domain":"llm","descriptors":[%s]}`, strings.Join(descriptors, ","))
	}
	const alone = `{"overallCode":"OK","statuses":[{"code":"OK"}]}`
	const both = `{"overallCode":"OK","statuses":[{"code":"OK"},{"code":"OK","currentLimit":{"name":"rpm","requestsPerUnit":10,"unit":"MINUTE"},"limitRemaining":%d,"durationUntilReset":"%ds"}]}`
	e.run(t, []step{
		{ask: call(planless), want: alone},
		{ask: call(limitless), want: alone},
		{ask: call(planless, beside), want: fmt.Sprintf(both, 9, 6)},
		{ask: call(limitless, beside), want: fmt.Sprintf(both, 8, 12)},
	})
	got := series(t, e.registry)
	for _, rule := range []string{"planned", "ghost"} {
		if lost := got[`ratelimit_charges_total{domain="llm",kind="refund",result="lost",rule="`+rule+`"}`]; lost != 2 {
			t.Errorf("lost refunds of rule %s: got %v, want 2", rule, lost)
		}
	}
}

// Interceptors get the calls of the service like those of other services.
func TestInterceptor(t *testing.T) {
	var method string
	service, err := rls.New(rls.Config{Decider: newLimiter(t, time.Now)})
	if err != nil {
		t.Fatal(err)
	}
	intercept := grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		method = info.FullMethod
		if md, _ := metadata.FromIncomingContext(ctx); len(md.Get("refuse")) > 0 {
			return nil, errors.New("refused")
		}
		return handler(ctx, req)
	})
	client := rlsv3.NewRateLimitServiceClient(dial(t, service.Register, append(rls.ServerOptions(), intercept)...))
	request := fromJSON(t, descriptor1(``, "k", "v"), &rlsv3.RateLimitRequest{})
	got, err := client.ShouldRateLimit(t.Context(), request)
	if err != nil || got.GetOverallCode() != rlsv3.RateLimitResponse_OK || method != rlsv3.RateLimitService_ShouldRateLimit_FullMethodName {
		t.Errorf("got %v, %v of method %s", got, err, method)
	}
	if got, err := client.ShouldRateLimit(metadata.AppendToOutgoingContext(t.Context(), "refuse", "1"), request); err == nil {
		t.Errorf("an interceptor that refuses: got %v", got)
	}
}

// Errors are logged, and many errors in a second are one line.
func TestTroubleIsLogged(t *testing.T) {
	var log bytes.Buffer
	e := newEnv(t, func(c *rls.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	const calls = 100
	for range calls {
		if _, err := e.ask(t, `{"domain":"llm"}`); err == nil {
			t.Fatal("no descriptors: got no error")
		}
	}
	lines := strings.Count(log.String(), "no descriptors: the gateway must send at least one")
	if lines == 0 || lines > calls/2 {
		t.Errorf("%d bad calls made %d lines\n%s", calls, lines, log.String())
	}
}
