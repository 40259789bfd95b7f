package server

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// xdsClient gets rules from a control plane: Envoy Gateway, Envoy AI Gateway, or any other that hands out the
// RateLimitConfig of envoyproxy/ratelimit over ADS, the state of the world.
//
// The service is the client of the stream. Each answer has all rules, and they take effect together: a domain that an
// answer lacks is gone at once. An answer that cannot be used is refused with the reason, and the rules before stay.
// A control plane that sends the refused answer again at once, as go-control-plane does, is refused
// again after 1 s, 2 s, 4 s, up to a minute.
//
// The last rules stay while the control plane is away. With a file they also outlive this process.
type xdsClient struct {
	Config config.XDS
	// File keeps the last rules; "" = they end with the process.
	File string
	Log  *slog.Logger
	// Apply puts all domains of an answer in force, or returns why none is. problem is why it has none.
	Apply func(ctx context.Context, domains []descriptor.DomainSpec, problem error) error
	// Connected is told when the control plane answers, and when its stream ends.
	Connected func(bool)

	version string // of the rules in force
	refused int    // answers in a row
}

// The pauses before an answer is refused again.
const (
	firstRefusalHold = time.Second
	lastRefusalHold  = time.Minute
	maxRefusalReason = 4096 // bytes of the reason that the control plane is told
)

// Recall puts the rules of the file in force, and reports whether there are some.
func (c *xdsClient) Recall(ctx context.Context) bool {
	if c.File == "" {
		return false
	}
	text, err := os.ReadFile(c.File)
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	var answer discoveryv3.DiscoveryResponse
	if err == nil {
		err = proto.Unmarshal(text, &answer)
	}
	if err == nil {
		err = c.apply(ctx, &answer)
	}
	if err != nil {
		c.Log.WarnContext(ctx, "the last rules of the control plane are not used", "file", c.File, "error", err)
		return false
	}
	c.Log.InfoContext(ctx, "the last rules of the control plane are in force until it sends others", "domains", len(answer.GetResources()))
	return true
}

// Run follows the rules until ctx ends.
func (c *xdsClient) Run(ctx context.Context) {
	pause := c.Config.Retry
	for {
		began := time.Now()
		err := c.stream(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > lastRefusalHold {
			pause = c.Config.Retry
		}
		wait := pause/2 + rand.N(pause) // #nosec G404 -- it spreads clients, and is no secret
		c.Log.WarnContext(ctx, "the control plane is away: the rules in force stay", "address", c.Config.Address, "again_in", wait.Round(time.Millisecond), "error", err)
		if !sleepFor(ctx, wait) {
			return
		}
		pause = min(2*pause, max(c.Config.MaxRetry, c.Config.Retry))
	}
}

// stream follows one stream to its end.
func (c *xdsClient) stream(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer c.Connected(false)
	creds, err := c.Config.TLS.Credentials("xds.tls")
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient(c.Config.Address, grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(c.Config.MaxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 6 * time.Minute, Timeout: 20 * time.Second})) // servers allow one each 5 minutes
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ctx = metadata.NewOutgoingContext(ctx, metadata.New(c.Config.Headers))
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		return err
	}
	c.version = "" // another control plane may count anew
	return c.follow(ctx, stream)
}

// xdsReceived is an answer, or the end of the stream.
type xdsReceived struct {
	answer *discoveryv3.DiscoveryResponse
	err    error
}

// follow asks for rules, and answers each answer.
func (c *xdsClient) follow(ctx context.Context, stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient) error {
	answers := make(chan xdsReceived)
	go receiveXDS(ctx, stream, answers)
	reply := c.first()
	for {
		if err := stream.Send(reply); err != nil {
			return err
		}
		next, err := awaitXDS(ctx, answers, nil)
		for err == nil {
			err = c.take(ctx, next)
			reply = c.reply(next, err)
			if err == nil {
				c.refused = 0
				break
			}
			c.refused++
			// A newer answer takes the place of one whose refusal is held back.
			newer, ended := awaitXDS(ctx, answers, time.After(c.hold()))
			if next, err = newer, ended; newer == nil {
				break
			}
		}
		if err != nil {
			return err
		}
	}
}

// receiveXDS hands the answers of a stream over until it or ctx ends.
func receiveXDS(ctx context.Context, stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient, answers chan<- xdsReceived) {
	for {
		answer, err := stream.Recv()
		select {
		case answers <- xdsReceived{answer, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// awaitXDS returns the next answer, or nil when the time is over; nil = there is no such time.
func awaitXDS(ctx context.Context, answers <-chan xdsReceived, over <-chan time.Time) (*discoveryv3.DiscoveryResponse, error) {
	select {
	case next := <-answers:
		return next.answer, next.err
	case <-over:
		return nil, nil //nolint:nilnil // no answer
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// hold is the pause before the present answer is refused.
func (c *xdsClient) hold() time.Duration {
	if c.refused <= 1 {
		return 0
	}
	return min(firstRefusalHold<<min(c.refused-2, 10), lastRefusalHold)
}

// take puts an answer in force, or returns why it is refused.
func (c *xdsClient) take(ctx context.Context, answer *discoveryv3.DiscoveryResponse) error {
	c.Connected(true)
	if err := c.apply(ctx, answer); err != nil {
		c.Log.ErrorContext(ctx, "the rules of the control plane are not used, and those in force stay", "version", answer.GetVersionInfo(), "error", err)
		return err
	}
	c.version = answer.GetVersionInfo()
	c.Log.InfoContext(ctx, "rules of the control plane", "version", c.version, "domains", len(answer.GetResources()))
	if err := c.keep(answer); err != nil {
		c.Log.WarnContext(ctx, "the rules of the control plane are not kept over a restart", "file", c.File, "error", err)
	}
	return nil
}

func (c *xdsClient) apply(ctx context.Context, answer *discoveryv3.DiscoveryResponse) error {
	domains, err := xdsDomains(answer)
	return c.Apply(ctx, domains, err)
}

// keep writes the answer to the file.
func (c *xdsClient) keep(answer *discoveryv3.DiscoveryResponse) error {
	if c.File == "" {
		return nil
	}
	text, err := proto.Marshal(answer)
	if err != nil {
		return err
	}
	return config.ReplaceFile(c.File, text)
}

// first is the first request of a stream.
func (c *xdsClient) first() *discoveryv3.DiscoveryRequest {
	fields := make(map[string]*structpb.Value, len(c.Config.Metadata))
	for key, value := range c.Config.Metadata {
		fields[key] = structpb.NewStringValue(value)
	}
	return &discoveryv3.DiscoveryRequest{TypeUrl: xdsTypeURL, Node: &corev3.Node{Id: c.Config.Node, Metadata: &structpb.Struct{Fields: fields}}}
}

// reply answers an answer. problem says why it is refused.
func (c *xdsClient) reply(answer *discoveryv3.DiscoveryResponse, problem error) *discoveryv3.DiscoveryRequest {
	r := &discoveryv3.DiscoveryRequest{TypeUrl: xdsTypeURL, VersionInfo: c.version, ResponseNonce: answer.GetNonce()}
	if problem != nil {
		text := problem.Error()
		r.ErrorDetail = &rpcstatus.Status{Code: int32(codes.InvalidArgument), Message: strings.ToValidUTF8(text[:min(len(text), maxRefusalReason)], "")}
	}
	return r
}

// sleepFor waits, and reports whether ctx goes on.
func sleepFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
