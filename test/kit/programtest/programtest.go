// Package programtest has a configuration and certificates for tests of the program.
package programtest

import (
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ratelimit/ratelimit/config"
)

// WriteFile writes a file below a directory of the test's own and returns its path.
func WriteFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TwoPerMinute is a configuration: a user has two requests a minute.
const TwoPerMinute = `
limits: {system: {rpm: 2/minute}}
domains:
- domain: shop
  rules:
  - {name: users, match: {user: "*"}, entity: "user/{user}", resource: api, consume: {rpm: hits}}
`

// DialPlain opens a connection without TLS that ends with the test.
func DialPlain(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Parsed returns the configuration of a text.
func Parsed(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, err := config.Parse("c.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Server.HTTP.Refunds, cfg.Server.HTTP.Charges = true, true // /json stands for gRPC
	return cfg
}
