package config

import (
	"time"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
)

// Mirror is another rate limit service that is asked each call too, to compare its answers. Callers do not wait for it.
type Mirror struct {
	Address string // host:port; "" = there is none
	TLS     ClientTLS
	Timeout time.Duration // of a call, 1ms to 1m; default 1s
}

func (m *Mirror) schema() yamlcfg.Schema {
	mapping := yamlcfg.Object{Title: "mirror", Needs: []string{"address"}, Keys: []yamlcfg.Key{
		key("address", "where the other service answers gRPC", yamlcfg.Address(&m.Address)),
		key("timeout", "longest time of a call of it; callers do not wait", yamlcfg.Duration(&m.Timeout, time.Millisecond, time.Minute)),
		key("tls", "TLS to the other service", yamlcfg.Confidential{Schema: m.TLS.schema("mirror.tls", "the other service")}),
	}}.Then(func(n yamlcfg.Node, _ bool) {
		if n.Given("tls") {
			m.TLS.Enabled = true
		}
	})
	return yamlcfg.Either{Mapping: mapping, Other: yamlcfg.Address(&m.Address)}
}
