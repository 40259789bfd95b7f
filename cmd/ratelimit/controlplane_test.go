package main

import (
	"crypto/tls"
	"path/filepath"
	"strings"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/ratelimit/ratelimit/test/kit/programtest"
	"github.com/ratelimit/ratelimit/test/kit/xdstest"
)

// The program starts with the variables of Envoy Gateway's Deployment, verbatim but for files, addresses and
// the directory of buckets. It follows the control plane by mutual TLS, answers by TLS before there are rules, and has
// the rules at once.
func TestStartsAsEnvoyGatewayStartsIt(t *testing.T) {
	dir := t.TempDir()
	own, plane := programtest.NewIdentity(t, dir, "own"), programtest.NewIdentity(t, dir, "plane")
	p := xdstest.New(t)
	p.Start("127.0.0.1:0", grpc.Creds(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{plane.Pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: own.Pool,
	})))
	d := startAs(t, map[string]string{
		"RUNTIME_ROOT": "/data", "RUNTIME_SUBDIRECTORY": "ratelimit", "RUNTIME_IGNOREDOTFILES": "true", "RUNTIME_WATCH_ROOT": "false", "LOG_LEVEL": "info", "USE_STATSD": "false",
		"CONFIG_TYPE": "GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_SERVER_URL": p.Address, "CONFIG_GRPC_XDS_NODE_ID": xdstest.Node, "CONFIG_GRPC_XDS_SERVER_USE_TLS": "true",
		"CONFIG_GRPC_XDS_CLIENT_TLS_CERT": own.Cert, "CONFIG_GRPC_XDS_CLIENT_TLS_KEY": own.Key, "CONFIG_GRPC_XDS_SERVER_TLS_CACERT": plane.Cert,
		"GRPC_SERVER_USE_TLS": "true", "GRPC_SERVER_TLS_CERT": own.Cert, "GRPC_SERVER_TLS_KEY": own.Key, "GRPC_SERVER_TLS_CA_CERT": plane.Cert, "FORCE_START_WITHOUT_INITIAL_CONFIG": "true",
		"REDIS_SOCKET_TYPE": "tcp", "REDIS_URL": "redis:6379", "RATELIMIT_DATA": t.TempDir(), "USE_PROMETHEUS": "true", "PROMETHEUS_ADDR": "127.0.0.1:0", "PROMETHEUS_MAPPER_YAML": "/etc/statsd-exporter/conf.yaml",
	})
	d.serves()
	conn, err := grpc.NewClient(d.grpc, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13, RootCAs: own.Pool})))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ask := func() (rlsv3.RateLimitResponse_Code, error) {
		answer, err := rlsv3.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), &rlsv3.RateLimitRequest{
			Domain: "default/eg/http", Descriptors: []*commonv3.RateLimitDescriptor{{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "user", Value: "a"}}}},
		})
		return answer.GetOverallCode(), err
	}
	if _, err := ask(); status.Code(err) != codes.Unavailable {
		t.Errorf("before there are rules: got %v, want unavailable", err)
	}
	if code, text := d.get(d.http, "/healthcheck", ""); code != 200 || text != "OK" {
		t.Errorf("/healthcheck: got %d %q", code, text)
	}
	p.Set("1", xdstest.RulesOf("default/eg/http", ratelimitv3.RateLimitUnit_HOUR))
	eventually(t, "an answer", func() bool { _, err := ask(); return err == nil })
	eventually(t, "a denial", func() bool { code, _ := ask(); return code == rlsv3.RateLimitResponse_OVER_LIMIT })
	p.Set("2")
	eventually(t, "no rules any more", func() bool { code, err := ask(); return err == nil && code == rlsv3.RateLimitResponse_OK })
	p.Set("3", xdstest.RulesOf("default/eg/http", ratelimitv3.RateLimitUnit_HOUR))
	eventually(t, "the balance of before", func() bool { code, _ := ask(); return code == rlsv3.RateLimitResponse_OVER_LIMIT })
}

// A stop before there are rules is one in order.
func TestStopBeforeThereAreRules(t *testing.T) {
	d := startAs(t, nil, "serve", "--xds", "127.0.0.1:1")
	eventually(t, "waiting", func() bool {
		return strings.Contains(d.log.String(), "nothing listens until the control plane has sent rules")
	})
}

// With serve --xds nothing listens until there are rules. With a data directory the last ones are in force while the
// control plane is away; rules of files stand beside them.
func TestServeWithAControlPlane(t *testing.T) {
	p := xdstest.New(t)
	p.Start("127.0.0.1:0")
	data := filepath.Join(t.TempDir(), "data")
	rules := programtest.WriteFile(t, "b.yaml", oneAnHour("b"))
	t.Run("first", func(t *testing.T) {
		d := startAs(t, map[string]string{}, "serve", "--config", programtest.WriteFile(t, "c.yaml", "xds: {address: '"+p.Address+"', node: "+xdstest.Node+"}\ninclude: [{path: '"+rules+"'}]\n"),
			"--data", data, "--http-address", "127.0.0.1:0", "--grpc-address", "127.0.0.1:0")
		eventually(t, "waiting", func() bool {
			return strings.Contains(d.log.String(), "nothing listens until the control plane has sent rules")
		})
		select {
		case <-d.greeting:
			t.Fatal("it listens before there are rules")
		default:
		}
		p.Set("1", xdstest.RulesOf("a", ratelimitv3.RateLimitUnit_HOUR))
		d.serves()
		eventually(t, "the file of the rules", func() bool { found, _ := filepath.Glob(filepath.Join(data, "xds.pb")); return len(found) == 1 })
	})
	p.Stop()
	t.Run("again", func(t *testing.T) {
		d := startAs(t, map[string]string{}, "serve", "--config", programtest.WriteFile(t, "c.yaml", "xds: {address: '"+p.Address+"', node: "+xdstest.Node+"}\ninclude: [{path: '"+rules+"'}]\n"),
			"--data", data, "--http-address", "127.0.0.1:0", "--grpc-address", "127.0.0.1:0")
		d.serves()
		for _, want := range []int{200, 200, 200, 200, 200, 429} {
			if got := d.ask("a"); got != want {
				t.Errorf("the kept rules: got %d, want %d", got, want)
			}
		}
		for _, want := range []int{200, 429} {
			if got := d.ask("b"); got != want {
				t.Errorf("the rules of a file: got %d, want %d", got, want)
			}
		}
	})
}
