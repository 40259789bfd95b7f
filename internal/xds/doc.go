// Package xds gets rules from a control plane: Envoy Gateway, Envoy AI Gateway, or any other that hands out the
// RateLimitConfig of envoyproxy/ratelimit over ADS, the state of the world.
//
// The service is the client of the stream. Each answer has all rules. They take effect together, or none of them: a
// domain that an answer lacks is gone at once, and an answer that cannot be used is refused with the reason, while the
// rules before stay. A control plane that sends the refused answer again at once, as go-control-plane does, is refused
// again after 1 s, 2 s, 4 s, up to a minute.
//
// The last rules stay while the control plane is away. With a file they also outlive this process.
package xds
