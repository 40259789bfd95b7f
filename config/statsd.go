package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
)

// Statsd is a StatsD server that gets the metrics of envoyproxy/ratelimit.
type Statsd struct {
	Address  string            // host:port; "" = there is none
	Protocol StatsdProtocol    // default tcp
	Interval time.Duration     // from one sending to the next, 100ms to 1h; default 10s
	Tags     map[string]string // of all metrics; nil = none
}

// StatsdProtocol is how metrics are sent.
type StatsdProtocol string

// The protocols. DogStatsD is UDP with tags of its own form.
const (
	StatsdTCP StatsdProtocol = "tcp"
	StatsdUDP StatsdProtocol = "udp"
	DogStatsd StatsdProtocol = "dogstatsd"
)

func (s *Statsd) schema() yamlcfg.Schema {
	var tags []yamlcfg.Entry[string]
	return yamlcfg.Object{Title: "server.statsd", Needs: []string{"address"}, Keys: []yamlcfg.Key{
		key("address", "of the server", yamlcfg.Address(&s.Address)),
		key("protocol", "`dogstatsd` is UDP with tags of Datadog's form", yamlcfg.Enum(&s.Protocol, StatsdTCP, StatsdUDP, DogStatsd)),
		key("interval", "from one sending to the next", yamlcfg.Duration(&s.Interval, 100*time.Millisecond, time.Hour)),
		key("tags", "of all metrics", yamlcfg.Dict[string]{Out: &tags, What: "a tag", Item: yamlcfg.Literal}),
	}}.Then(func(n yamlcfg.Node, _ bool) {
		for _, t := range tags {
			if err := CheckTag(t.Name, t.Value); err != nil {
				n.FailAt("tags", "%s", err)
			}
			if s.Tags == nil {
				s.Tags = map[string]string{}
			}
			s.Tags[t.Name] = t.Value
		}
	})
}

// CheckTag refuses tags that would break a line of StatsD.
func CheckTag(name, value string) error {
	const reserved = ":|@#,= \t\r\n"
	if name == "" || strings.ContainsAny(name, reserved) || strings.ContainsAny(value, "@#, \t\r\n") {
		return fmt.Errorf("tag %.50q cannot be sent: a name has none of the characters %q, and a value no '@', '#', ',' or space", name, reserved)
	}
	return nil
}
