package rls

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// smallMessage is the size up to which a message is decided at any number of bytes in use. So large
// messages cannot keep small ones out.
const smallMessage = 4 << 10

// errNoRules has the text of envoyproxy/ratelimit.
var errNoRules = status.Error(codes.Unavailable, "no rate limit configuration loaded")

// serve answers a decoded call. Its errors are those of gRPC, and only for mistakes in the
// gateway's configuration.
func (s *Service) serve(ctx context.Context, now time.Time, c *call) (*answer, error) {
	if c.problem != nil && c.problem.denied {
		return s.tooLarge(ctx, c.method, c.problem.text), nil
	}
	st := s.state.Load()
	c.options = st.options
	if st.options.NoRules {
		return nil, errNoRules
	}
	if c.problem == nil {
		s.decide(ctx, now, c, st)
	}
	if c.problem != nil {
		s.metrics.invalid.WithLabelValues(c.problem.reason).Inc()
		if !c.problem.forbidden() { // which is no mistake in the gateway's configuration
			s.log.trouble(ctx, eventInvalid, c.problem.reason, slog.String("error", c.problem.text))
		}
		return nil, status.Error(c.problem.code(), c.problem.text)
	}
	c.encode()
	encodeKuadrant(c)
	s.metrics.count(st, c)
	s.counters.note(c)
	s.metrics.limits.observe(c, now, s.now)
	s.observer.account(now, st, c)
	s.denials.log(ctx, now, c)
	st.log.warn(ctx, now, c, st.rules)
	out := c.answer()
	if s.mirror != nil && c.method == nil && c.wire != "" && len(metadata.ValueFromIncomingContext(ctx, MirroredHeader)) == 0 {
		s.mirror(Mirrored{Domain: domainOf(&c.plan), Wire: c.wire, Answer: out.data})
	}
	return out, nil
}

// domainOf returns the name of the plan's domain, "" for an unknown one.
func domainOf(p *descriptor.Plan) string {
	if p.Domain == nil {
		return ""
	}
	return p.Domain.Name()
}

// tooLarge denies a call that is larger than that of any gateway.
func (s *Service) tooLarge(ctx context.Context, m *method, text string) *answer {
	s.metrics.errors.WithLabelValues(reasonTooLarge).Inc()
	s.log.trouble(ctx, eventTooLarge, "", slog.String("error", text))
	c := call{request: request{method: m}, ruling: ruling{options: s.state.Load().options}}
	c.verdict = verdict{denied: true, reason: reasonTooLarge, blanket: true, unbooked: bookingLost}
	c.encode()
	encodeKuadrant(&c)
	return c.answer()
}

// fallback answers a call by policy, without a plan.
func (s *Service) fallback(m *method, reason string) *answer {
	c := call{request: request{method: m}, ruling: ruling{options: s.state.Load().options}}
	c.verdict = undecided(c.options.OnUnavailable, reason)
	s.metrics.degraded.WithLabelValues(c.verdict.policy.String()).Inc()
	c.encode()
	encodeKuadrant(&c)
	return c.answer()
}
