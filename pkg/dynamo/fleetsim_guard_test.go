//go:build !race

// What one goroutine at a time does has no races, and takes ten times as long to be looked at.

package dynamo

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

// blindToLeases has a lane take a bucket for one of which nothing is out on lease.
func blindToLeases(_ *process, l *lane) {
	v := l.knows.view
	if v == nil {
		return
	}
	blind := *v
	blind.balances = make([]balance, len(v.balances))
	for i, b := range v.balances {
		b.leased, b.lease = 0, false
		blind.balances[i] = b
	}
	l.knows.view = &blind
}

// immortal has a holder serve a lease for as long as it likes.
func immortal(p *process, l *lane) {
	if h := &l.holder; h.text != "" {
		h.until = p.now().Add(time.Hour)
	}
}

// forgetful has a lane forget what it is to give back.
func forgetful(_ *process, l *lane) {
	l.queue = slices.DeleteFunc(l.queue, func(r *request) bool { return r.call == nil })
}

// unmoved has a write leave the time of the last refill as it was.
func unmoved(in *dynamodb.UpdateItemInput) {
	set, rest := *in.UpdateExpression, ""
	for _, word := range []string{" ADD ", " REMOVE "} {
		if i := strings.Index(set, word); i >= 0 {
			set, rest = set[:i], set[i:]+rest
		}
	}
	var kept []string
	for assignment := range strings.SplitSeq(strings.TrimPrefix(set, "SET "), ", ") {
		name, _, _ := strings.Cut(assignment, "=")
		if in.ExpressionAttributeNames[name] != schema.AttrRefilled {
			kept = append(kept, assignment)
		}
	}
	*in.UpdateExpression = "SET " + strings.Join(kept, ", ") + rest
	prune(in)
}

// returnsDead has a write return what the dead held, where it counts as spent.
func returnsDead(in *dynamodb.UpdateItemInput) {
	writer := ""
	for _, c := range clauses(in) {
		if strings.HasPrefix(c.attr, schema.AttrSlot) && c.operator == "<>" {
			writer = replicaOf(textOf(in, c))
		}
	}
	for _, c := range clauses(in) {
		replica, ok := strings.CutPrefix(c.attr, attrHolding)
		if !ok || c.operator != "=" || replica == writer {
			continue
		}
		h, _ := parseHolding(replica, textOf(in, c))
		for _, a := range h.amounts {
			leaveMore(in, schema.LimitAttr(a.limit, schema.LimitTokens), a.tokens)
		}
	}
}

// textOf returns the string that a clause compares with.
func textOf(in *dynamodb.UpdateItemInput, c clause) string {
	text, _ := in.ExpressionAttributeValues[c.text[strings.IndexByte(c.text, ':'):]].(*types.AttributeValueMemberS)
	return text.Value
}

// leaveMore has an update leave n more of an attribute that it sets or adds to.
func leaveMore(in *dynamodb.UpdateItemInput, attr string, n int64) {
	for placeholder, name := range in.ExpressionAttributeNames {
		if name != attr {
			continue
		}
		for _, operator := range []string{"=", " "} {
			_, after, found := strings.Cut(*in.UpdateExpression, placeholder+operator+":")
			if !found {
				continue
			}
			value := ":" + after
			if i := strings.IndexAny(value, " ,-"); i >= 0 {
				value = value[:i]
			}
			number, _ := in.ExpressionAttributeValues[value].(*types.AttributeValueMemberN)
			before, _ := strconv.ParseInt(number.Value, 10, 64)
			fresh := ":raised" + value[1:]
			in.ExpressionAttributeValues[fresh] = schema.NumberAttribute(before + n)
			*in.UpdateExpression = strings.Replace(*in.UpdateExpression, placeholder+operator+value, placeholder+operator+fresh, 1)
			prune(in)
			return
		}
	}
}

// anyMark has a mark be put in the place of another one.
func anyMark(in *dynamodb.PutItemInput) {
	if pk, ok := in.Item[schema.AttrPK].(*types.AttributeValueMemberS); ok && strings.Contains(pk.Value, "SETTLED") {
		in.ConditionExpression, in.ExpressionAttributeNames = nil, nil
	}
}

// TestSimulateFindsMissingRules takes away one rule at a time: a simulation that passes
// without a rule says nothing about it.
func TestSimulateFindsMissingRules(t *testing.T) {
	with := func(change func(*fleetFeatures)) func(*rand.Rand) fleetFeatures {
		return func(r *rand.Rand) fleetFeatures {
			f := drawFleetFeatures(r)
			f.leases, f.ttl, f.few = true, false, true
			change(&f)
			return f
		}
	}
	leasing := with(func(f *fleetFeatures) { *f = fleetFeatures{leases: true, lost: f.lost, pause: f.pause, two: f.two} })
	pausing := with(func(f *fleetFeatures) { *f = fleetFeatures{leases: true, pause: true, few: true, long: true} })
	sleeping := with(func(f *fleetFeatures) { *f = fleetFeatures{leases: true, suspend: true, few: true, long: true} })
	giving := with(func(f *fleetFeatures) { f.lost, f.slots, f.refund, f.adopt = true, true, true, false })
	adopting := with(func(f *fleetFeatures) {
		*f = fleetFeatures{adopt: true, restless: true, two: true, refund: true, few: true}
	})
	dying := with(func(f *fleetFeatures) { *f = fleetFeatures{leases: true, crash: true, few: true, long: true} })
	copying := with(func(f *fleetFeatures) {
		*f = fleetFeatures{leases: true, copies: true, few: true, long: true, restart: true}
	})
	charging := with(func(f *fleetFeatures) { *f = fleetFeatures{charge: true, lost: true, slots: true, few: true} })
	denying := with(func(f *fleetFeatures) { *f = fleetFeatures{cascade: true, tails: true, few: true} })
	settling := with(func(f *fleetFeatures) { f.settle = true })
	leased := without(func(c clause) bool {
		return c.is(schema.LimitLeased, "=") || c.is(schema.LimitLeased, "<=") || c.is(schema.LimitLeased, ">=") || c.is(schema.LimitLeased, "absent")
	})
	drop := func(attr, operator string) func(*dynamodb.UpdateItemInput) {
		return without(func(c clause) bool { return c.is(attr, operator) })
	}
	for _, tc := range []struct {
		name     string
		without  fleetSabotage
		features func(*rand.Rand) fleetFeatures
	}{
		{"what is leased keeps its place in the capacity", fleetSabotage{lane: blindToLeases, update: leased}, leasing},
		{"what a lease has spent is reported by a refill", fleetSabotage{update: onSteps(unmoved)}, leasing},
		{"a lease is served for its term and no longer", fleetSabotage{lane: immortal}, pausing},
		{"a lease is served for its term by the clock on the wall, too", fleetSabotage{callClock: true}, sleeping},
		{"a write that gives rests on the ids of writes", fleetSabotage{update: without(func(c clause) bool {
			return strings.HasPrefix(c.attr, schema.AttrSlot) || strings.HasPrefix(c.attr, schema.AttrBooked)
		})}, giving},
		{"what the dead held counts as spent", fleetSabotage{update: onSteps(returnsDead)}, dying},
		{"ids have letters that are drawn for them", fleetSabotage{unsalted: true}, copying},
		{"a charge rests on the last one of its slot", fleetSabotage{update: without(func(c clause) bool { return strings.HasPrefix(c.attr, schema.AttrBooked) })}, charging},
		{"what was taken for no admitted request is given back", fleetSabotage{lane: forgetful}, denying},
		{"a refill rests on rf", fleetSabotage{update: drop(schema.AttrRefilled, "=")}, leasing},
		{"a write rests on the limits", fleetSabotage{update: drop(schema.AttrVersion, "=")}, adopting},
		{"a reservation is settled once", fleetSabotage{put: anyMark}, settling},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for seed := range uint64(2) {
				if err := newFleet(t, seed, tc.features, fleetSabotage{}).run(); err != nil {
					t.Fatalf("seed %d, with every rule: %v", seed, err)
				}
			}
			began := time.Now()
			for seed := range uint64(1000) {
				if err := newFleet(t, seed, tc.features, tc.without).run(); err != nil {
					t.Logf("seed %d, in %v: %v", seed, time.Since(began).Round(time.Millisecond), err)
					return
				}
			}
			t.Error("nothing was found")
		})
	}
}
