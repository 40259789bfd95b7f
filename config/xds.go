package config

import (
	"time"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
)

// XDS is the control plane that hands out rules, in the form of files of envoyproxy/ratelimit.
type XDS struct {
	Address  string            // host:port; "" = there is none
	Node     string            // the id of this service there; default "ratelimit"
	Metadata map[string]string // of the node
	Headers  map[string]string // of the stream, which may be secrets
	TLS      ClientTLS
	// Early answers calls before there are rules, as unavailable; default false: nothing listens until then.
	Early      bool
	Retry      time.Duration // first pause after a lost connection, 100ms to 1h; default 1s
	MaxRetry   time.Duration // longest pause, 100ms to 1h; default 60s
	MaxMessage int           // bytes of an answer, 64 KiB to 1 GiB; default 64 MiB
}

func (x *XDS) schema() yamlcfg.Schema {
	var metadata, headers []yamlcfg.Entry[string]
	pairs := func(out *[]yamlcfg.Entry[string], what string) yamlcfg.Schema {
		return yamlcfg.Dict[string]{Out: out, What: what, Item: yamlcfg.Literal}
	}
	return yamlcfg.Object{Title: "xds", Needs: []string{"address"}, Keys: []yamlcfg.Key{
		key("address", "where the control plane answers ADS", yamlcfg.Address(&x.Address)),
		key("node", "id of this service, by which the control plane chooses rules", yamlcfg.Name(&x.Node)),
		key("metadata", "metadata of the node", pairs(&metadata, "metadata")),
		key("headers", "headers of the stream", yamlcfg.Confidential{Schema: pairs(&headers, "a header")}),
		key("tls", "TLS to the control plane; files are read for each connection", yamlcfg.Confidential{Schema: x.TLS.schema("xds.tls", "the control plane")}),
		key("early", "answers calls as unavailable until there are rules; without it nothing listens", yamlcfg.Bool(&x.Early)),
		key("retry", "first pause after a lost connection; it doubles up to `max_retry`", yamlcfg.Duration(&x.Retry, 100*time.Millisecond, time.Hour)),
		key("max_retry", "longest pause", yamlcfg.Duration(&x.MaxRetry, 100*time.Millisecond, time.Hour)),
		key("max_message", "bytes of an answer", yamlcfg.Integer(&x.MaxMessage, 64<<10, 1<<30)),
	}}.Then(func(n yamlcfg.Node, _ bool) {
		x.Metadata, x.Headers = mapOf(metadata), mapOf(headers)
		if n.Given("tls") {
			x.TLS.Enabled = true
		}
	})
}

func mapOf(entries []yamlcfg.Entry[string]) map[string]string {
	out := make(map[string]string, len(entries))
	for _, e := range entries {
		out[e.Name] = e.Value
	}
	return out
}
