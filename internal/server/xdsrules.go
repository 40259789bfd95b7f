package server

import (
	"fmt"
	"strings"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// xdsTypeURL is the type of the resources.
const xdsTypeURL = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"

// maxTreeLevels bounds how deep descriptors nest, as in files.
const maxTreeLevels = 256

// xdsDomains returns the domains of an answer. An error names the resource.
func xdsDomains(answer *discoveryv3.DiscoveryResponse) ([]descriptor.DomainSpec, error) {
	if answer.GetTypeUrl() != xdsTypeURL {
		return nil, fmt.Errorf("the type is %.200q, and %s was asked for", answer.GetTypeUrl(), xdsTypeURL)
	}
	domains := make([]descriptor.DomainSpec, 0, len(answer.GetResources()))
	owner := make(map[string]string)
	for i, resource := range answer.GetResources() {
		var rules ratelimitv3.RateLimitConfig
		if err := resource.UnmarshalTo(&rules); err != nil {
			return nil, fmt.Errorf("resource %d is no RateLimitConfig: %w", i+1, err)
		}
		name, domain := rules.GetName(), rules.GetDomain()
		if domain == "" {
			return nil, fmt.Errorf("%s: the domain must not be empty", name)
		}
		if first, twice := owner[domain]; twice {
			return nil, fmt.Errorf("%s: the domain %q is in %s already", name, domain, first)
		}
		owner[domain] = name
		tree, err := xdsTree(rules.GetDescriptors(), name+": descriptors", maxTreeLevels)
		if err != nil {
			return nil, err
		}
		domains = append(domains, descriptor.DomainSpec{Path: name, Domain: domain, Tree: tree})
	}
	return domains, nil
}

// xdsTree returns descriptors with at most so many levels.
func xdsTree(descriptors []*ratelimitv3.RateLimitDescriptor, path string, levels int) ([]descriptor.TreeSpec, error) {
	if levels == 0 {
		return nil, fmt.Errorf("%s are nested more than %d deep", path, maxTreeLevels)
	}
	tree := make([]descriptor.TreeSpec, 0, len(descriptors))
	for i, d := range descriptors {
		at := fmt.Sprintf("%s[%d]", path, i)
		below, err := xdsTree(d.GetDescriptors(), at+".descriptors", levels-1)
		if err != nil {
			return nil, err
		}
		tree = append(tree, descriptor.TreeSpec{
			Path: at, Key: d.GetKey(), Value: d.GetValue(), Limit: xdsLimit(d.GetRateLimit()),
			Shadow: d.GetShadowMode(), Quota: d.GetQuotaMode(), Metadata: xdsMetadata(d.GetMetadata()), Children: below,
		})
	}
	return tree, nil
}

// xdsMetadata returns metadata; nil for none.
func xdsMetadata(of *structpb.Struct) map[string]any {
	if len(of.GetFields()) == 0 {
		return nil
	}
	return of.AsMap()
}

// xdsLimit returns a limit; nil for none.
func xdsLimit(policy *ratelimitv3.RateLimitPolicy) *descriptor.TreeLimitSpec {
	if policy == nil {
		return nil
	}
	limit := &descriptor.TreeLimitSpec{RequestsPerUnit: policy.GetRequestsPerUnit(), Unlimited: policy.GetUnlimited(), Name: policy.GetName()}
	if unit := policy.GetUnit(); unit != ratelimitv3.RateLimitUnit_UNKNOWN || !limit.Unlimited {
		limit.Unit = strings.ToLower(unit.String())
	}
	for _, replaced := range policy.GetReplaces() {
		limit.Replaces = append(limit.Replaces, replaced.GetName())
	}
	return limit
}
