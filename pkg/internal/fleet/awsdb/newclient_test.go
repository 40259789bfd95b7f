package awsdb

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// bareEnvironment leaves the SDK nothing to find.
func bareEnvironment(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
}

func TestNewClientOfALocalEndpoint(t *testing.T) {
	bareEnvironment(t)
	client, err := NewClient(t.Context(), ClientConfig{Endpoint: "http://127.0.0.1:8000", MaxConnections: 17, ConnectTimeout: 3 * time.Second})
	if err != nil {
		t.Fatalf("NewClient: %v", err)
	}
	o := client.Options()
	if o.Region != "us-east-1" || aws.ToString(o.BaseEndpoint) != "http://127.0.0.1:8000" {
		t.Errorf("region %q, endpoint %q", o.Region, aws.ToString(o.BaseEndpoint))
	}
	if got := o.Retryer.MaxAttempts(); got != 1 {
		t.Errorf("%d attempts, want 1", got)
	}
	got, err := o.Credentials.Retrieve(t.Context())
	if err != nil || got.AccessKeyID != "local" {
		t.Errorf("credentials %q, error %v", got.AccessKeyID, err)
	}
	buildable := o.HTTPClient.(genuineClient).next.(plainBodies).next.(*awshttp.BuildableClient)
	transport := buildable.GetTransport()
	if transport.MaxIdleConnsPerHost != 17 || transport.MaxIdleConns != 17 || transport.TLSHandshakeTimeout != 3*time.Second {
		t.Errorf("%d idle connections, %d per host, handshake %v", transport.MaxIdleConns, transport.MaxIdleConnsPerHost, transport.TLSHandshakeTimeout)
	}
	if got := buildable.GetDialer().Timeout; got != 3*time.Second {
		t.Errorf("dial timeout %v", got)
	}
}

// TestNewClientUsesWhatIsConfigured: dummy credentials are for environments without
// any.
func TestNewClientUsesWhatIsConfigured(t *testing.T) {
	bareEnvironment(t)
	t.Setenv("AWS_REGION", "eu-central-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "mine")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	for _, endpoint := range []string{"", "http://localhost:8000", "https://dynamodb.example.com"} {
		client, err := NewClient(t.Context(), ClientConfig{Endpoint: endpoint})
		if err != nil {
			t.Fatalf("NewClient: %v", err)
		}
		o := client.Options()
		got, err := o.Credentials.Retrieve(t.Context())
		if err != nil || got.AccessKeyID != "mine" || o.Region != "eu-central-1" {
			t.Errorf("endpoint %q: key %q, region %q, error %v", endpoint, got.AccessKeyID, o.Region, err)
		}
	}
	client, err := NewClient(t.Context(), ClientConfig{Region: "eu-west-1"})
	if err != nil || client.Options().Region != "eu-west-1" {
		t.Errorf("a configured region gave way to the environment's: %v", err)
	}
}

func TestNewClientRefuses(t *testing.T) {
	bareEnvironment(t)
	for _, test := range []struct {
		cfg  ClientConfig
		says string
	}{
		{ClientConfig{}, "no AWS region"},
		{ClientConfig{Endpoint: "127.0.0.1:8000"}, "want a URL such as http://127.0.0.1:8000"},
		{ClientConfig{Endpoint: "ftp://127.0.0.1"}, "want a URL"},
		{ClientConfig{Endpoint: "http://"}, "want a URL"},
		{ClientConfig{Endpoint: "http://user@127.0.0.1"}, "want a URL"},
		{ClientConfig{Endpoint: "http://127.0.0.1:8000\x00"}, "want a URL"},
	} {
		if _, err := NewClient(t.Context(), test.cfg); !errors.Is(err, limiter.ErrInvalid) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%+v: error = %v, want %q", test.cfg, err, test.says)
		}
	}
}

func TestIsLocalEndpoint(t *testing.T) {
	for endpoint, want := range map[string]bool{
		"": false, "http://127.0.0.1:8000": true, "http://[::1]:8000": true, "http://localhost": true, "http://dynamodb:8000": true, "http://ddb.localhost": true,
		"http://10.1.2.3:8000": true, "http://192.168.0.2": true, "http://host.docker.internal:8000": true, "https://8.8.8.8": false,
		"https://dynamodb.us-east-1.amazonaws.com": false, "https://vpce-1.dynamodb.us-east-1.vpce.amazonaws.com": false, "http://localhost.example.com": false, "localhost:8000": false,
	} {
		if got := IsLocalEndpoint(endpoint); got != want {
			t.Errorf("IsLocalEndpoint(%q) = %t, want %t", endpoint, got, want)
		}
	}
}

// TestClientNeverRetries: one request a call, with any answer.
func TestClientNeverRetries(t *testing.T) {
	bareEnvironment(t)
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1)%2 == 0 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Errorf("Hijack: %v", err)
			return
		}
		_ = conn.Close() // the broken connection is the fault under test
	}))
	defer server.Close()
	client, err := NewClient(t.Context(), ClientConfig{Endpoint: server.URL})
	if err != nil {
		t.Fatalf("NewClient: %v", err)
	}
	for calls := int64(1); calls <= 4; calls++ {
		if _, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String("t"), Key: testKey()}); err == nil {
			t.Error("no error")
		}
		if got := requests.Load(); got != calls {
			t.Fatalf("%d requests for %d calls", got, calls)
		}
	}
}

// TestNewClientTellsTheClock: replies correct a clock that is an hour behind, and
// redirects stay unfollowed as with the SDK's own client.
func TestNewClientTellsTheClock(t *testing.T) {
	bareEnvironment(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			t.Errorf("a redirect to %s was followed", r.URL)
		}
		w.Header().Set("X-Amzn-Requestid", "1")
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	defer server.Close()
	clock := NewClock(func() time.Time { return time.Now().Add(-time.Hour) }, 0).WithMaxOffset(2 * time.Hour)
	client, err := NewClient(t.Context(), ClientConfig{Endpoint: server.URL, Clock: clock})
	if err != nil {
		t.Fatalf("NewClient: %v", err)
	}
	if got := clock.State(); got != (ClockState{Trusted: true}) {
		t.Errorf("before a reply: %+v", got)
	}
	if _, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String("t"), Key: testKey()}); err == nil {
		t.Error("a redirect was taken for a reply")
	}
	got := clock.State()
	if off := (got.Offset - time.Hour).Abs(); !got.Observed || !got.Trusted || off > 2*time.Second {
		t.Errorf("after a reply: %+v, want an offset of an hour", got)
	}
}

// TestConnectionsOutliveLongRequests: calls one after the other share a connection,
// also when a reply is there before net/http is done with the request's body.
func TestConnectionsOutliveLongRequests(t *testing.T) {
	bareEnvironment(t)
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Amzn-Requestid", "1")
		if err == nil {
			_, err = io.WriteString(w, "{}")
		}
		if err != nil {
			t.Errorf("the request broke off: %v", err)
		}
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	client, err := NewClient(t.Context(), ClientConfig{Endpoint: server.URL})
	if err != nil {
		t.Fatalf("NewClient: %v", err)
	}
	item := testKey()
	item["long"] = &types.AttributeValueMemberS{Value: strings.Repeat("x", 100_000)}
	for range 500 {
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("t"), Item: item}); err != nil {
			t.Fatalf("PutItem: %v", err)
		}
	}
	// net/http gives a connection up, too, when it was kept from running for 50 ms. Bodies
	// that write themselves cost about a hundred connections.
	if got := connections.Load(); got > 5 {
		t.Errorf("500 calls opened %d connections, want 1 to 5", got)
	}
}
