package awsdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// DefaultMaxConnections is how many idle connections are kept to an endpoint.
	// The SDK's default, 10, made 64 callers open new ones all the time: 0.6 of the throughput.
	DefaultMaxConnections = 256
	// DefaultConnectTimeout bounds each of connecting and the TLS handshake.
	DefaultConnectTimeout = time.Second

	defaultRegion = "us-east-1"
)

// ClientConfig configures a client. The zero ClientConfig finds region and
// credentials where every AWS program does: environment, shared files, role.
type ClientConfig struct {
	Region         string        // default: the environment's; us-east-1 for a local endpoint
	Endpoint       string        // URL; "" = the region's own
	MaxConnections int           // idle connections kept, at least 1; 0 = DefaultMaxConnections
	ConnectTimeout time.Duration // 0 = DefaultConnectTimeout
	Clock          *Clock        // gets the Date of every reply; nil = none
}

// NewClient returns a client for the store. It never retries, because a retried write
// can be applied twice: the sender decides whether a write may be sent again. For a
// local endpoint it needs no credentials.
//
// It reads the environment and shared files, and contacts no server. Errors wrap
// limiter.ErrInvalid.
func NewClient(ctx context.Context, cfg ClientConfig) (*dynamodb.Client, error) {
	loaded, err := load(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	return dynamodb.NewFromConfig(loaded, func(o *dynamodb.Options) {
		if cfg.Endpoint != "" {
			o.BaseEndpoint = &cfg.Endpoint
		}
		o.HTTPClient = genuineClient{plainBodies{o.HTTPClient}}
		if cfg.Clock != nil {
			o.HTTPClient = datedClient{next: o.HTTPClient, clock: cfg.Clock}
		}
		o.Retryer = aws.NopRetryer{}
		o.DisableValidateResponseChecksum = true // genuineClient does
		o.Logger = logging.Nop{}                 // which has texts of the endpoint, a line for each reply
		o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
			return errors.Join(s.Initialize.Add(sendTracker{}, middleware.Before), s.Initialize.Add(replyChecker{}, middleware.After))
		})
	}), nil
}

// NewStreamsClient returns a client of the streams of tables. It retries as the SDK does:
// its calls change nothing. Else it is as [NewClient].
func NewStreamsClient(ctx context.Context, cfg ClientConfig) (*dynamodbstreams.Client, error) {
	loaded, err := load(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	return dynamodbstreams.NewFromConfig(loaded, func(o *dynamodbstreams.Options) {
		if cfg.Endpoint != "" {
			o.BaseEndpoint = &cfg.Endpoint
		}
		o.HTTPClient = genuineClient{plainBodies{o.HTTPClient}}
		o.Logger = logging.Nop{} // as above
	}), nil
}

// load fills in the defaults of a configuration, and loads that of the SDK.
func load(ctx context.Context, cfg *ClientConfig) (loaded aws.Config, err error) {
	if cfg.MaxConnections <= 0 {
		cfg.MaxConnections = DefaultMaxConnections
	}
	if cfg.ConnectTimeout <= 0 {
		cfg.ConnectTimeout = DefaultConnectTimeout
	}
	if err := checkEndpoint(cfg.Endpoint); err != nil {
		return aws.Config{}, err
	}
	local := IsLocalEndpoint(cfg.Endpoint)
	if loaded, err = config.LoadDefaultConfig(ctx, loadOptions(*cfg, local)...); err != nil {
		return aws.Config{}, fmt.Errorf("%w: AWS configuration: %w", limiter.ErrInvalid, err)
	}
	if loaded.Region == "" {
		return aws.Config{}, fmt.Errorf("%w: no AWS region: set store.dynamodb.region, or AWS_REGION in the environment", limiter.ErrInvalid)
	}
	if local {
		if _, err := loaded.Credentials.Retrieve(ctx); err != nil {
			loaded.Credentials = credentials.NewStaticCredentialsProvider("local", "local", "")
		}
	}
	loaded.Credentials = markedCredentials{loaded.Credentials}
	return loaded, nil
}

// plainBodies hides from net/http that bodies of the SDK can write themselves. A body
// that does is read once more after its last byte. When the reply was faster that
// read fails, and net/http closes the connection. Then the next request has to open
// one, or a reply that is being read breaks off.
type plainBodies struct{ next aws.HTTPClient }

// Do implements aws.HTTPClient.
func (c plainBodies) Do(request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		request.Body = struct{ io.ReadCloser }{request.Body}
	}
	return c.next.Do(request)
}

func loadOptions(cfg ClientConfig, local bool) []func(*config.LoadOptions) error {
	options := []func(*config.LoadOptions) error{config.WithHTTPClient(newHTTPClient(cfg))}
	if cfg.Region != "" {
		options = append(options, config.WithRegion(cfg.Region))
	} else if local {
		options = append(options, config.WithDefaultRegion(defaultRegion))
	}
	if local {
		options = append(options, config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	}
	return options
}

func newHTTPClient(cfg ClientConfig) *awshttp.BuildableClient {
	dialer := func(d *net.Dialer) { d.Timeout = cfg.ConnectTimeout }
	transport := func(t *http.Transport) {
		t.MaxIdleConns = cfg.MaxConnections
		t.MaxIdleConnsPerHost = cfg.MaxConnections
		t.TLSHandshakeTimeout = cfg.ConnectTimeout
	}
	return awshttp.NewBuildableClient().WithDialerOptions(dialer).WithTransportOptions(transport)
}

func checkEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" {
		return fmt.Errorf("%w: endpoint %q of DynamoDB: want a URL such as http://127.0.0.1:8000", limiter.ErrInvalid, endpoint)
	}
	return nil
}

// IsLocalEndpoint reports whether the URL is of a DynamoDB for development: on
// this machine, on a private address, or under a name without a domain, as
// containers have. Only there the program creates tables and needs no credentials.
func IsLocalEndpoint(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil || u.Hostname() == "" {
		return false
	}
	host := u.Hostname()
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || ip.IsPrivate()
	}
	return !strings.Contains(host, ".") || strings.HasSuffix(host, ".localhost") || host == "host.docker.internal"
}

// replyChecker fails calls by [CheckReply], for programs that have no [Guard]. Items of [ItemsOf] check writes.
type replyChecker struct{}

// ID implements middleware.InitializeMiddleware.
func (replyChecker) ID() string { return "ReplyChecker" }

// HandleInitialize implements middleware.InitializeMiddleware.
func (replyChecker) HandleInitialize(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	out, metadata, err := next.HandleInitialize(ctx, in)
	return out, metadata, CheckReply(in.Parameters, out.Result, err)
}

// sendTracker marks the errors of requests that got no connection to be written to:
// they were certainly not applied. The SDK itself does not distinguish a request that
// was canceled before it was sent from one that was after.
type sendTracker struct{}

// ID implements middleware.InitializeMiddleware.
func (sendTracker) ID() string { return "SendTracker" }

// HandleInitialize implements middleware.InitializeMiddleware.
func (sendTracker) HandleInitialize(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	out, metadata, err := next.HandleInitialize(ctx, in)
	if err != nil && !sent.Load() {
		err = &notSentError{err}
	}
	return out, metadata, err
}
