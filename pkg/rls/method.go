package rls

import (
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// KuadrantServiceName is the name of Kuadrant's service, which its plugin in Envoy calls. It decides by the limits of
// limitador files. Its methods have the messages of https://github.com/Kuadrant/limitador,
// limitador-server/proto/kuadrantrls.proto of September 2026.
const KuadrantServiceName = "kuadrant.service.ratelimit.v1.RateLimitService"

// method is a method of Kuadrant's service.
type method struct {
	name    string
	does    descriptor.Use
	commits bool
}

// kuadrantMethods are the methods of the service.
func kuadrantMethods() []*method {
	return []*method{
		{name: "CheckRateLimit", does: descriptor.UseCheck},
		{name: "Report", does: descriptor.UseReport},
		{name: "Reserve", does: descriptor.UseReserve},
		{name: "Commit", does: descriptor.UseReport, commits: true},
	}
}

// methodOf returns the method with an effect; nil = ShouldRateLimit.
func methodOf(use descriptor.Use) *method {
	for _, m := range kuadrantMethods() {
		if m.does == use && !m.commits {
			return m
		}
	}
	return nil
}

// use returns the effect of the method on limits.
func (m *method) use() descriptor.Use {
	if m == nil {
		return descriptor.UseTake
	}
	return m.does
}

func (m *method) fullName() string {
	if m == nil {
		return rlsv3.RateLimitService_ShouldRateLimit_FullMethodName
	}
	return "/" + KuadrantServiceName + "/" + m.name
}
