//go:build !race

package fleetsim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// dropping returns a mutation that takes conditions away: those of attributes whose names
// begin and end so, with an operator.
func dropping(prefix, suffix, operator string) func(*dynamodb.UpdateItemInput) {
	return func(in *dynamodb.UpdateItemInput) {
		if in.ConditionExpression == nil {
			return
		}
		var kept []string
		for clause := range strings.SplitSeq(*in.ConditionExpression, " AND ") {
			name, is := split(clause)
			attr := in.ExpressionAttributeNames[name]
			if is != operator || !strings.HasPrefix(attr, prefix) || !strings.HasSuffix(attr, suffix) {
				kept = append(kept, clause)
			}
		}
		text := strings.Join(kept, " AND ")
		in.ConditionExpression = &text
		if text == "" {
			in.ConditionExpression = nil
		}
		prune(in)
	}
}

// split returns the name and the operator of a condition.
func split(clause string) (name, operator string) {
	if i := strings.IndexByte(clause, '('); i >= 0 {
		return strings.Trim(clause[i:], "()"), clause[:i]
	}
	i := strings.IndexAny(clause, "=<>")
	j := strings.IndexByte(clause, ':')
	return clause[:i], clause[i:j]
}

// prune takes the placeholders out that stand nowhere, which DynamoDB refuses.
func prune(in *dynamodb.UpdateItemInput) {
	text := *in.UpdateExpression + " "
	if in.ConditionExpression != nil {
		text += *in.ConditionExpression + " "
	}
	used := func(name string) bool {
		for rest := text; ; {
			i := strings.Index(rest, name)
			if i < 0 {
				return false
			}
			rest = rest[i+len(name):]
			if !strings.ContainsAny(rest[:1], "0123456789") {
				return true
			}
		}
	}
	for name := range in.ExpressionAttributeNames {
		if !used(name) {
			delete(in.ExpressionAttributeNames, name)
		}
	}
	for name := range in.ExpressionAttributeValues {
		if !used(name) {
			delete(in.ExpressionAttributeValues, name)
		}
	}
}

// TestSimulateFindsMissingRules takes away one rule at a time: a simulation that passes
// without a rule says nothing about it.
func TestSimulateFindsMissingRules(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs it")
	}
	limit := schema.LimitPrefix
	for _, tc := range []struct {
		name    string
		without sabotage
		only    string
	}{
		{"an exact write pins the serial number", sabotage{mutation: dropping(schema.AttrSerial, "", "=")}, "few,leases"},
		{"a write pins the epoch", sabotage{mutation: dropping(schema.AttrEpoch, "", "=")}, "few,adopt,restless,refund,two"},
		{"a take has a bound", sabotage{mutation: dropping(limit, schema.LimitFullAt, "<=")}, "few"},
		{"a charge rests on the last one of its slot", sabotage{mutation: dropping(schema.AttrBooked, "", "=")}, "few,charge,refund,lost"},
		{"a lease ends by the wall clock, too", sabotage{callClock: true}, "few,leases,suspend,long"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for seed := range uint64(2) {
				if err := newFleet(t, seed, tc.only, "", sabotage{}).run(); err != nil {
					t.Fatalf("seed %d, with every rule: %v", seed, err)
				}
			}
			began := time.Now()
			for seed := range uint64(200) {
				if err := newFleet(t, seed, tc.only, "", tc.without).run(); err != nil {
					t.Logf("seed %d, in %v: %v", seed, time.Since(began).Round(time.Millisecond), err)
					return
				}
			}
			t.Error("nothing was found")
		})
	}
}
