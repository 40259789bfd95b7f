package dynamo

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

// clause is one comparison of a condition, or one assignment of an update.
type clause struct {
	attr     string // as in the item
	operator string // "", "=", "<>", "<", "<=", ">=", or "absent"
	text     string
}

// is reports whether the clause is about an attribute of any limit, or of the item.
func (c clause) is(attr, operator string) bool {
	return c.operator == operator && (c.attr == attr || strings.HasPrefix(c.attr, schema.LimitPrefix) && strings.HasSuffix(c.attr, "_"+attr))
}

// clauses splits a condition.
func clauses(in *dynamodb.UpdateItemInput) []clause {
	var all []clause
	for text := range strings.SplitSeq(*in.ConditionExpression, " AND ") {
		if name, ok := strings.CutPrefix(text, "attribute_not_exists("); ok {
			all = append(all, clause{in.ExpressionAttributeNames[strings.TrimSuffix(name, ")")], "absent", text})
			continue
		}
		i := strings.IndexAny(text, "<>=")
		j := strings.IndexByte(text, ':')
		all = append(all, clause{in.ExpressionAttributeNames[text[:i]], text[i:j], text})
	}
	return all
}

// without drops the clauses of a condition that match.
func without(match func(clause) bool) func(*dynamodb.UpdateItemInput) {
	return func(in *dynamodb.UpdateItemInput) {
		var kept []string
		for _, c := range clauses(in) {
			if !match(c) {
				kept = append(kept, c.text)
			}
		}
		*in.ConditionExpression = strings.Join(kept, " AND ")
		prune(in)
	}
}

// prune drops the placeholders that are not used any more.
func prune(in *dynamodb.UpdateItemInput) {
	used := map[string]bool{}
	for _, expression := range []string{*in.ConditionExpression, *in.UpdateExpression} {
		for _, word := range strings.FieldsFunc(expression, func(r rune) bool { return strings.ContainsRune(" ,()=<>-", r) }) {
			used[word] = true
		}
	}
	maps.DeleteFunc(in.ExpressionAttributeNames, func(p, _ string) bool { return !used[p] })
	maps.DeleteFunc(in.ExpressionAttributeValues, func(p string, _ types.AttributeValue) bool { return !used[p] })
}

// swaps reports whether the update puts the bucket under other limits.
func swaps(in *dynamodb.UpdateItemInput) bool {
	for _, c := range clauses(in) {
		if c.is(schema.AttrGeneration, "=") {
			return true
		}
	}
	return false
}

// onSwaps applies a change to the updates that put the bucket under other limits.
func onSwaps(change func(*dynamodb.UpdateItemInput)) func(*dynamodb.UpdateItemInput) {
	return func(in *dynamodb.UpdateItemInput) {
		if swaps(in) {
			change(in)
		}
	}
}

// onSteps applies a change to the updates that change leases.
func onSteps(change func(*dynamodb.UpdateItemInput)) func(*dynamodb.UpdateItemInput) {
	return func(in *dynamodb.UpdateItemInput) {
		if slices.ContainsFunc(clauses(in), func(c clause) bool { return strings.HasPrefix(c.attr, attrHolding) }) {
			change(in)
		}
	}
}

// TestSimulationFindsMissingRules takes away one rule at a time: a simulation that
// passes without a rule says nothing about it.
func TestSimulationFindsMissingRules(t *testing.T) {
	drop := func(attr, operator string) sabotage {
		return sabotage{write: without(func(c clause) bool { return c.is(attr, operator) })}
	}
	with := func(change func(*features)) func(*rand.Rand) features {
		return func(r *rand.Rand) features {
			f := drawFeatures(r)
			change(&f)
			return f
		}
	}
	whatever := with(func(*features) {})
	adopting := with(func(f *features) { f.adopt, f.two, f.rush = true, false, true })
	leasing := with(func(f *features) { *f = features{lease: true, lost: f.lost, crash: f.crash, two: f.two} })
	rushing := with(func(f *features) { *f = features{lease: true, rush: true, lost: true} })
	slots := func(c clause) bool { return strings.HasPrefix(c.attr, attrHolding) }
	pinned := func(c clause) bool { return strings.HasPrefix(c.attr, schema.AttrBooked) }
	expiring := with(func(f *features) { *f = features{ttl: true, charge: true, two: f.two, rush: f.rush} })
	for _, tc := range []struct {
		name     string
		without  sabotage
		features func(*rand.Rand) features
	}{
		{"rf moves when a limit is full", sabotage{neverMove: true, write: without(func(c clause) bool { return c.is(schema.LimitTokens, "<") })}, whatever},
		{"a take rests on the tokens' being there", drop(schema.LimitTokens, ">="), whatever},
		{"a refill rests on rf", drop(schema.AttrRefilled, "="), whatever},
		{"a change of limits rests on the balance", sabotage{write: onSwaps(without(func(c clause) bool { return c.is(schema.LimitTokens, "=") }))}, adopting},
		{"the ttl after a charge is reckoned from the floor", sabotage{forgiving: true}, expiring},
		{"what is granted keeps its place in the capacity", sabotage{unlent: true}, leasing},
		{"what a lease has spent is reported after a refill", sabotage{still: true}, leasing},
		{"a report is not before what it reports", sabotage{early: true}, leasing},
		{"a lease is served for its term and no longer", sabotage{immortal: true}, leasing},
		{"a step rests on the slots", sabotage{write: without(slots)}, rushing},
		{"a step rests on what is out on lease", sabotage{write: onSteps(without(func(c clause) bool { return c.is(schema.LimitLeased, "=") }))}, rushing},
		{"a lease is returned once", sabotage{twice: true}, leasing},
		{"a write that books rests on its slot", sabotage{write: without(pinned)}, whatever},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for seed := range uint64(40_000) {
				if err := newSim(t, seed, tc.features, tc.without).run(); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Error("nothing was found")
		})
	}
}

// withoutRemoval keeps the ttl that a write would remove.
func withoutRemoval(in *dynamodb.UpdateItemInput) {
	expression, removal, _ := strings.Cut(*in.UpdateExpression, " REMOVE ")
	if in.ExpressionAttributeNames[removal] == schema.AttrTTL {
		*in.UpdateExpression = expression
		prune(in)
	}
}
