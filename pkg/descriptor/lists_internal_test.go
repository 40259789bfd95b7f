package descriptor

import (
	"fmt"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Rules with short lists of values are told apart by one hash, as those with one value are.
func TestListsAreFoundByTheIndex(t *testing.T) {
	specs := make([]RuleSpec, 5000)
	for i := range specs {
		specs[i] = RuleSpec{Unlimited: true, Match: []MatchSpec{{Key: "user", Values: []string{fmt.Sprint("a", i), fmt.Sprint("b", i), fmt.Sprint("c", i)}}}}
	}
	rules, problems := Compile([]DomainSpec{{Domain: "d", Namespace: limiter.DefaultNamespace, Rules: specs}}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, tables := range rules.domains[0].enforcing.closed {
		for _, table := range *tables {
			for _, b := range table.buckets {
				if len(b.more) > 2 {
					t.Fatalf("%d rules are compared one by one", len(b.more)+1)
				}
			}
		}
	}
	last := Descriptor{Entries: []Entry{{"user", "c4999"}}}
	if r := rules.domains[0].Match(&last); r == nil || r.Name() != "rule-5000" {
		t.Errorf("the last rule is not found: %v", r)
	}
}
