package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
)

// GRPC is the listener of the Rate Limit Service.
type GRPC struct {
	Address          string // host:port, or "unix:" and a path; default "0.0.0.0:8081"
	TLS              TLS
	MaxConnectionAge time.Duration // 1s to 24h; 0 = connections live on; default 30m
	MaxConnections   int           // 1 to 1,000,000; default 0: as many as the memory has room for, up to MostConnections
	MaxInFlight      int           // calls in hand at once, 1 to 1,000,000; default 65,536
}

// MostConnections is the largest default of GRPC.MaxConnections, however much memory there is.
const MostConnections = 10_000

// HTTP is the listener of /json, metrics and health.
type HTTP struct {
	Address string // host:port; default "127.0.0.1:8080"
	TLS     TLS
	PProf   bool // serves /debug/pprof; default false

	// Hosts are the host names that requests may be addressed to, without ports. Requests to
	// localhost and to IP addresses are always served. Empty = any name, except that a loopback
	// address then serves only those two; default empty.
	Hosts   []string
	Refunds bool // /json gives tokens back; default false
	Charges bool // /json charges tokens, into debt; default false

	// Counters has /counters list the counters of limitador files, with values of requests; default false.
	Counters bool
}

// TLS names files in PEM form, relative to the working directory of the program.
type TLS struct {
	Cert     string // "" = no TLS
	Key      string // not empty when Cert is not
	ClientCA string // clients must show a certificate of these authorities; "" = they need none
	// ClientName is a DNS name that the certificate of a client must have; "" = any; only with ClientCA.
	ClientName string
}

// Enabled reports whether the listener speaks TLS.
func (t TLS) Enabled() bool { return t.Cert != "" }

// Listen returns the network and the address of the listener, as [net.Listen] takes them.
func (g *GRPC) Listen() (network, address string) {
	if path, socket := strings.CutPrefix(g.Address, unixPrefix); socket {
		return "unix", path
	}
	return "tcp", g.Address
}

const unixPrefix = "unix:"

// CheckListener refuses an address that is neither host:port nor a Unix socket.
func CheckListener(address string) error {
	path, socket := strings.CutPrefix(address, unixPrefix)
	if socket && path != "" || !socket && yamlcfg.IsAddress(address) {
		return nil
	}
	return fmt.Errorf("%q must be host:port, such as 127.0.0.1:8081, or a socket, such as unix:/run/ratelimit/grpc.sock", address)
}

// socketOrAddress is an address, or a Unix socket.
func socketOrAddress(out *string) yamlcfg.Schema {
	of := yamlcfg.Address(out)
	shape := *of.Shape()
	shape.Pattern = `:[0-9]+$|^unix:.`
	return yamlcfg.Scalar{Of: shape, Read: func(n yamlcfg.Node) {
		if !n.IsScalar() || !strings.HasPrefix(n.Raw(), unixPrefix) {
			of.Decode(n)
			return
		}
		if err := CheckListener(n.Raw()); err != nil {
			n.Failf("%s", err)
			return
		}
		*out = n.Raw()
	}}
}

func (g *GRPC) schema() yamlcfg.Schema {
	return keys(
		key("address", "without a host all interfaces; port 0 is a free one; or a Unix socket, `unix:PATH`", socketOrAddress(&g.Address)),
		key("tls", "[TLS](#tls)", yamlcfg.Confidential{Schema: g.TLS.schema()}),
		key("max_connection_age", "ends connections, so that they spread over replicas; calls in flight are finished; `0s` = never", yamlcfg.Duration(&g.MaxConnectionAge, 0, day)),
		key("max_connections", "[Bounds](#bounds)", yamlcfg.Integer(&g.MaxConnections, 1, 1_000_000)),
		key("max_in_flight", "complete calls at once; `decision.on_unavailable` answers further ones", yamlcfg.Integer(&g.MaxInFlight, 1, 1_000_000)),
	)
}

func (h *HTTP) schema() yamlcfg.Schema {
	return keys(
		key("address", "as of gRPC", yamlcfg.Address(&h.Address)),
		key("tls", "[TLS](#tls)", yamlcfg.Confidential{Schema: h.TLS.schema()}),
		key("pprof", "profiles under `/debug/pprof`", yamlcfg.Bool(&h.PProf)),
		key("hosts", "host names of requests, beside `localhost` and IP addresses; `/healthz` and `/readyz` take any", yamlcfg.Names(&h.Hosts)),
		key("refunds", "`/json` refunds tokens, by `isNegativeHits`", yamlcfg.Bool(&h.Refunds)),
		key("charges", "`/json` charges tokens, by rules with `overdraw`", yamlcfg.Bool(&h.Charges)),
		key("counters", "`/counters` lists counters of limitador files, with values of requests", yamlcfg.Bool(&h.Counters)),
	)
}

// schema is a certificate and its key, or neither.
func (t *TLS) schema() yamlcfg.Schema {
	return yamlcfg.Object{Title: "tls", Needs: []string{"cert", "key"}, Keys: []yamlcfg.Key{
		key("cert", "certificate and its chain", yamlcfg.Name(&t.Cert)), key("key", "its private key", yamlcfg.Name(&t.Key)), key("client_ca", "authorities; clients must show a certificate of one", yamlcfg.Name(&t.ClientCA)),
		key("client_name", "DNS name that the certificate of a client must have; with `client_ca`", yamlcfg.Name(&t.ClientName)),
	}}.Then(func(n yamlcfg.Node, _ bool) {
		switch {
		case t.ClientName != "" && t.ClientCA == "":
			n.Failf("has client_name without client_ca, whose certificates it is about")
		case n.Empty(), t.Cert != "" && t.Key != "":
		case t.Cert == "" && t.Key == "":
			n.Failf("needs cert and key; without TLS leave it out")
		case t.Cert == "":
			n.Failf("needs cert too, the certificate that belongs to key")
		default:
			n.Failf("needs key too, the private key that belongs to cert")
		}
	})
}
