package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
	"github.com/ratelimit/ratelimit/test/kit/xdstest"
)

// appliedDomains has the domains that the client put in force.
type appliedDomains struct {
	mu      sync.Mutex
	domains []string
	ended   atomic.Int64 // streams
}

// put is a service that has no domain "wrong", and compiles the others.
func (a *appliedDomains) put(_ context.Context, specs []descriptor.DomainSpec, problem error) error {
	if problem != nil {
		return problem
	}
	if _, problems := descriptor.Compile(specs, nil); len(problems) > 0 {
		return errors.New(problems[0].Path + ": " + problems[0].Text)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.domains = nil
	for _, s := range specs {
		a.domains = append(a.domains, s.Domain)
	}
	return nil
}

func (a *appliedDomains) now() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(slices.Sorted(slices.Values(a.domains)), " ")
}

// followTestPlane follows the control plane until the test ends.
func followTestPlane(t *testing.T, cfg config.XDS, file string) *appliedDomains {
	t.Helper()
	a := &appliedDomains{domains: []string{}}
	cfg.Node, cfg.Retry, cfg.MaxRetry, cfg.MaxMessage = xdstest.Node, 50*time.Millisecond, 100*time.Millisecond, 64<<20
	client := &xdsClient{Config: cfg, File: file, Log: slog.New(slog.DiscardHandler), Apply: a.put, Connected: func(on bool) {
		if !on {
			a.ended.Add(1)
		}
	}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	client.Recall(ctx)
	go func() {
		defer close(done)
		client.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return a
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("in 20 s not: %s", what)
		}
	}
}

const hour = ratelimitv3.RateLimitUnit_HOUR

// An answer is the whole truth at once: domains come, go, and are none, also after the control plane begins anew
// with version 1. While it is away the last rules stay.
func TestAnswersAreTheWholeTruth(t *testing.T) {
	t.Parallel()
	p := xdstest.New(t)
	p.Start("127.0.0.1:0")
	a := followTestPlane(t, config.XDS{Address: p.Address, Metadata: map[string]string{"zone": "a"}}, "")
	is := func(want string) {
		t.Helper()
		eventually(t, "domains "+want, func() bool { return a.now() == want })
	}
	p.Set("1", xdstest.RulesOf("one", hour), xdstest.RulesOf("two", hour))
	is("one two")
	p.Set("2", xdstest.RulesOf("two", hour), xdstest.RulesOf("three", hour))
	is("three two")
	p.Set("3")
	is("")
	p.Set("4", xdstest.RulesOf("four", hour))
	is("four")
	asked := p.Asked()
	first, last := asked[0], asked[len(asked)-1]
	if first.GetNode().GetId() != xdstest.Node || first.GetNode().GetMetadata().GetFields()["zone"].GetStringValue() != "a" || first.GetVersionInfo() != "" || first.GetTypeUrl() != xdsTypeURL {
		t.Errorf("first request %v", first)
	}
	if last.GetNode() != nil && last.GetResponseNonce() == "" {
		t.Errorf("last request %v", last)
	}

	p.Stop()
	address := p.Address
	p.Start(address)
	if a.now() != "four" {
		t.Errorf("while the control plane is away: got %q", a.now())
	}
	p.Set("1", xdstest.RulesOf("five", hour))
	is("five")
	if got := p.Refusals(); len(got) > 0 {
		t.Errorf("refused: %q", got)
	}
}

// What cannot be used is refused with the resource and the reason, and the rules before stay. It is not refused as
// often as the control plane sends it again.
func TestRefusals(t *testing.T) {
	t.Parallel()
	empty := xdstest.RulesOf("a", hour)
	empty.Descriptors[0].Key = ""
	twice := xdstest.RulesOf("a", hour)
	twice.Descriptors = append(twice.Descriptors, twice.Descriptors[0])
	other := xdstest.RulesOf("a", hour)
	other.Name = "other"
	for name, test := range map[string]struct {
		rules []*ratelimitv3.RateLimitConfig
		want  string
	}{
		"no unit":        {[]*ratelimitv3.RateLimitConfig{xdstest.RulesOf("a", ratelimitv3.RateLimitUnit_UNKNOWN)}, `a-rules: descriptors[0].rate_limit.unit: "unknown" is no unit`},
		"no key":         {[]*ratelimitv3.RateLimitConfig{empty}, "a-rules: descriptors[0].key"},
		"a key twice":    {[]*ratelimitv3.RateLimitConfig{twice}, "a-rules: descriptors[1]: key \"user\""},
		"no domain":      {[]*ratelimitv3.RateLimitConfig{xdstest.RulesOf("", hour)}, "-rules: the domain must not be empty"},
		"a domain twice": {[]*ratelimitv3.RateLimitConfig{xdstest.RulesOf("a", hour), other}, `the domain "a" is in`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := xdstest.New(t)
			p.Start("127.0.0.1:0")
			p.Set("1", xdstest.RulesOf("good", hour))
			a := followTestPlane(t, config.XDS{Address: p.Address}, "")
			eventually(t, "rules", func() bool { return a.now() == "good" })
			p.Set("2", test.rules...)
			eventually(t, "refused", func() bool { return len(p.Refusals()) > 0 })
			if got := p.Refusals()[0]; !strings.Contains(got, test.want) {
				t.Errorf("the reason is %q, want %q", got, test.want)
			}
			if a.now() != "good" {
				t.Errorf("in force: %q", a.now())
			}
			p.Set("3", xdstest.RulesOf("better", hour))
			eventually(t, "better rules", func() bool { return a.now() == "better" })
			if got := len(p.Refusals()); got > 4 {
				t.Errorf("refused %d times", got)
			}
		})
	}
}

// A large answer is read, and a certificate that is renewed is used with the next connection.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, client := programtest.NewIdentity(t, dir, "server"), programtest.NewIdentity(t, dir, "client")
	secure := credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{server.Pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: client.Pool,
	})
	p := xdstest.New(t)
	p.Start("127.0.0.1:0", grpc.Creds(secure))
	const most = 30_000
	many := make([]*ratelimitv3.RateLimitConfig, 0, most)
	for i := range most {
		many = append(many, &ratelimitv3.RateLimitConfig{Name: fmt.Sprint(strings.Repeat("n", 150), i), Domain: fmt.Sprint("d", i)})
	}
	p.Set("1", many...)
	stale := programtest.NewIdentity(t, dir, "stale")
	certificate, private := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	replace := func(with programtest.Identity) {
		for from, to := range map[string]string{with.Cert: certificate, with.Key: private} {
			text, err := os.ReadFile(from)
			if err == nil {
				err = os.WriteFile(to, text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	replace(stale)
	a := followTestPlane(t, config.XDS{Address: p.Address, TLS: config.ClientTLS{Enabled: true, CA: server.Cert, Cert: certificate, Key: private}}, "")
	eventually(t, "two streams that end", func() bool { return a.ended.Load() > 1 })
	if a.now() != "" {
		t.Fatal("rules came over a connection with a certificate that is not trusted")
	}
	replace(client)
	eventually(t, "30,000 domains", func() bool { return strings.Count(a.now(), " ") == 29_999 })
}

// The last rules outlive the process.
func TestRulesOutliveTheProcess(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "xds.pb")
	p := xdstest.New(t)
	p.Start("127.0.0.1:0")
	p.Set("1", xdstest.RulesOf("kept", hour))
	first := followTestPlane(t, config.XDS{Address: p.Address}, file)
	eventually(t, "rules", func() bool { return first.now() == "kept" })
	eventually(t, "the file", func() bool { _, err := os.Stat(file); return err == nil })
	p.Stop()
	if second := followTestPlane(t, config.XDS{Address: p.Address}, file); second.now() != "kept" {
		t.Errorf("after a restart: %q", second.now())
	}
	if err := os.WriteFile(file, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if third := followTestPlane(t, config.XDS{Address: p.Address}, file); third.now() != "" {
		t.Errorf("of a damaged file: %q", third.now())
	}
}

// garbage is a control plane that sends what nobody asked for.
type garbage struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer

	replies chan *discoveryv3.DiscoveryRequest
}

func (g *garbage) StreamAggregatedResources(stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	for i := range 4 {
		request, err := stream.Recv()
		if err != nil {
			return err
		}
		g.replies <- request
		answer := &discoveryv3.DiscoveryResponse{TypeUrl: xdsTypeURL, Nonce: strconv.Itoa(i), VersionInfo: strconv.Itoa(i), ControlPlane: &corev3.ControlPlane{}}
		if i == 1 {
			answer.TypeUrl = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
	return errors.New("broken")
}

func TestOtherTypesAreRefused(t *testing.T) {
	t.Parallel()
	g := &garbage{replies: make(chan *discoveryv3.DiscoveryRequest, 100)}
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, g)
	go func() { _ = server.Serve(listener) }() // it ends with the server
	t.Cleanup(server.Stop)
	followTestPlane(t, config.XDS{Address: listener.Addr().String()}, "")
	for i, refused := range []bool{false, false, true, false} {
		select {
		case r := <-g.replies:
			if (r.GetErrorDetail() != nil) != refused {
				t.Errorf("request %d: %v", i, r)
			}
			if refused && r.GetVersionInfo() != "0" {
				t.Errorf("a refusal names version %q, want that in force, 0", r.GetVersionInfo())
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no request %d", i)
		}
	}
}

// A file is not repeated in the log: its name can be a key that was written in its place.
func TestNamesOfFilesAreNotLogged(t *testing.T) {
	t.Parallel()
	const secret = "hush-hush"
	for _, files := range []config.ClientTLS{{CA: secret}, {Cert: secret, Key: secret}} {
		files.Enabled = true
		log, ended := new(proctest.LogBuffer), make(chan bool, 1)
		ctx, cancel := context.WithCancel(t.Context())
		client := &xdsClient{
			Config: config.XDS{Address: "127.0.0.1:1", TLS: files, Retry: time.Millisecond, MaxRetry: time.Millisecond, MaxMessage: 1 << 20},
			Log:    slog.New(slog.NewTextHandler(log, nil)), Connected: func(bool) {},
		}
		go func() {
			client.Run(ctx)
			ended <- true
		}()
		eventually(t, "a line of the log", func() bool { return strings.Contains(log.String(), "no such file") })
		cancel()
		<-ended
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log repeats the name: %s", log)
		}
	}
}
