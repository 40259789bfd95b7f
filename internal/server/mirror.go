package server

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

const (
	mirrorQueue   = 1024     // calls that wait
	mirrorCalls   = 64       // at a time
	mirrorMessage = 16 << 10 // bytes; a larger call is not mirrored
)

// Results of a mirrored call.
const (
	mirrorSame     = "same"     // the codes of the call and of all descriptors
	mirrorStatuses = "statuses" // the code of the call is the same, and one of a descriptor is not
	mirrorStricter = "stricter" // here the call is denied, there it is not
	mirrorLooser   = "looser"   // there it is denied, here it is not
	mirrorError    = "error"    // the other service gave no answer, or one without a code
	mirrorDropped  = "dropped"  // it is too slow, or the call is too large: it was not asked
)

// mirror asks another service each call too, and counts where its answers differ. No caller waits for it.
type mirror struct {
	cfg   config.Mirror
	log   *slog.Logger
	calls *prometheus.CounterVec // domain, result
	queue chan rls.Mirrored
	warn  *limiter.SampledLog
	conn  *grpc.ClientConn
	ended atomic.Bool
}

// newMirror returns the mirror of a configuration; nil = it has none.
func newMirror(cfg config.Mirror, registry prometheus.Registerer, log *slog.Logger) (*mirror, error) {
	if cfg.Address == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	m := &mirror{cfg: cfg, log: log, queue: make(chan rls.Mirrored, mirrorQueue), warn: limiter.NewSampledLog(log)}
	m.calls = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ratelimit_mirror_calls_total", Help: "Calls that the other service was asked too, by the comparison of its answer with the one here."}, []string{"domain", "result"})
	secure, err := cfg.TLS.Credentials("mirror.tls")
	if err != nil {
		return nil, err
	}
	if m.conn, err = grpc.NewClient(cfg.Address, grpc.WithTransportCredentials(secure)); err != nil {
		return nil, err
	}
	return m, registry.Register(m.calls)
}

// offer has a call mirrored, if there is room. It never waits.
func (m *mirror) offer(call rls.Mirrored) {
	if len(call.Wire) <= mirrorMessage && !m.ended.Load() {
		select {
		case m.queue <- call:
			return
		default:
		}
	}
	m.calls.WithLabelValues(call.Domain, mirrorDropped).Inc()
}

// run asks the other service until ctx ends. A nil mirror asks none.
func (m *mirror) run(ctx context.Context) error {
	if m == nil {
		return nil
	}
	var workers sync.WaitGroup
	for range mirrorCalls {
		workers.Go(func() {
			for {
				select {
				case call := <-m.queue:
					m.ask(ctx, &call)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	workers.Wait()
	m.ended.Store(true)
	return nil
}

// close ends the connection to the other service.
func (m *mirror) close() error {
	if m == nil || m.conn == nil {
		return nil
	}
	return m.conn.Close()
}

// ask asks the other service one call, and counts the comparison.
func (m *mirror) ask(ctx context.Context, call *rls.Mirrored) {
	var request rlsv3.RateLimitRequest
	var here, there rlsv3.RateLimitResponse
	if err := errors.Join(proto.Unmarshal([]byte(call.Wire), &request), proto.Unmarshal(call.Answer, &here)); err != nil { // such as text that is not UTF-8
		m.calls.WithLabelValues(call.Domain, mirrorDropped).Inc()
		return
	}
	ctx, stop := context.WithTimeout(ctx, m.cfg.Timeout)
	defer stop()
	ctx = metadata.AppendToOutgoingContext(ctx, rls.MirroredHeader, "true")
	if err := m.conn.Invoke(ctx, rlsv3.RateLimitService_ShouldRateLimit_FullMethodName, &request, &there); err != nil {
		m.calls.WithLabelValues(call.Domain, mirrorError).Inc()
		m.warn.Write(ctx, time.Now(), slog.LevelWarn, "mirror", "the mirrored service gives no answer", slog.String("address", m.cfg.Address), slog.Any("error", err))
		return
	}
	result := compare(&here, &there)
	m.calls.WithLabelValues(call.Domain, result).Inc()
	if result != mirrorSame {
		m.warn.Write(ctx, time.Now(), slog.LevelInfo, "mirror "+result, "the mirrored service answers differently", slog.String("domain", call.Domain), slog.String("result", result),
			slog.String("here", here.GetOverallCode().String()), slog.String("there", there.GetOverallCode().String()), slog.String("descriptors", keysOf(request.GetDescriptors())))
	}
}

// compare returns the result of a comparison of two answers.
func compare(here, there *rlsv3.RateLimitResponse) string {
	over := func(r *rlsv3.RateLimitResponse) bool {
		return r.GetOverallCode() == rlsv3.RateLimitResponse_OVER_LIMIT
	}
	switch {
	case over(here) && !over(there):
		return mirrorStricter
	case over(there) && !over(here):
		return mirrorLooser
	}
	switch n := len(there.GetStatuses()); {
	case there.GetOverallCode() == rlsv3.RateLimitResponse_UNKNOWN:
		return mirrorError
	case n > 0 && n != len(here.GetStatuses()): // that of limitador has none
		return mirrorStatuses
	}
	for i := range min(len(here.GetStatuses()), len(there.GetStatuses())) {
		if here.GetStatuses()[i].GetCode() != there.GetStatuses()[i].GetCode() {
			return mirrorStatuses
		}
	}
	return mirrorSame
}

// maxKeys bounds the keys in a line of the log.
const maxKeys = 16

// keysOf names the keys of descriptors, without values, which may be secrets.
func keysOf(descriptors []*commonv3.RateLimitDescriptor) string {
	var keys []string
	for _, d := range descriptors {
		for _, e := range d.GetEntries() {
			if len(keys) == maxKeys {
				return strings.Join(keys, " ") + " …"
			}
			keys = append(keys, strings.ToValidUTF8(e.GetKey(), "?"))
		}
		keys = append(keys, ";")
	}
	return strings.TrimSuffix(strings.Join(keys, " "), " ;")
}
