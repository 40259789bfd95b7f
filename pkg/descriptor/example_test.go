package descriptor_test

import (
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// A gateway asks for one request of an API key to a model. The first rule that matches names the
// bucket and the amount.
func Example() {
	rules, problems := descriptor.Compile([]descriptor.DomainSpec{{
		Path:   "domains[0]",
		Domain: "llm-gateway",
		Rules: []descriptor.RuleSpec{{
			Path: "domains[0].rules[0]",
			Name: "requests",
			Match: []descriptor.MatchSpec{
				{Path: "domains[0].rules[0].match.api_key", Key: "api_key", Value: "*"},
				{Path: "domains[0].rules[0].match.model", Key: "model", Value: "gpt-*"},
			},
			Takes: []descriptor.TakeSpec{{
				Path:     "domains[0].rules[0]",
				Entity:   "key/{api_key}",
				Resource: "{model}",
				Consume:  []descriptor.ConsumeSpec{{Limit: "rpm", Constant: 1000}},
			}},
		}},
	}}, nil)
	for _, p := range problems {
		fmt.Println(p.Path, p.Text)
	}

	call := descriptor.Call{
		Domain: "llm-gateway",
		Descriptors: []descriptor.Descriptor{
			{Entries: []descriptor.Entry{{Key: "model", Value: "gpt-4"}, {Key: "api_key", Value: "k/1"}}},
		},
	}
	var plan descriptor.Plan
	rules.Plan(&call, &plan)
	for _, take := range plan.Request.Takes {
		fmt.Println(take.Entity, take.Resource, take.Consume)
	}
	// Output: key/k%2F1 gpt-4 [{rpm 1000}]
}
