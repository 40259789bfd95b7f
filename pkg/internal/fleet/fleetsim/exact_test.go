package fleetsim_test

import (
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// streak is an exact write that is tried again and again.
type streak struct {
	kind        string
	first, last int64
	epoch       string // that its first try rested on
	tries       int
}

// givenUp is how long a write must not be tried to count as given up: nothing wants it any more.
const givenUp = 150 * int64(time.Millisecond)

// attrsOf returns the attributes that an expression names.
func attrsOf(in *dynamodb.UpdateItemInput, text *string) (attrs []string) {
	if text == nil {
		return nil
	}
	for name := range strings.FieldsFuncSeq(*text, func(c rune) bool { return c != '#' && (c < '0' || c > '9') }) {
		if attr, ok := in.ExpressionAttributeNames[name]; ok {
			attrs = append(attrs, attr)
		}
	}
	return attrs
}

// leaseWrite is the kind of a write that changes leases alone. Others may change them, too.
const leaseWrite = "lease write"

// exactKind returns the kind of an exact write of a lease, of limits or of shards; "" = none.
func exactKind(in *dynamodb.UpdateItemInput) string {
	if !slices.Contains(attrsOf(in, in.ConditionExpression), schema.AttrSerial) {
		return ""
	}
	changes := attrsOf(in, in.UpdateExpression)
	for _, kind := range []struct {
		name  string
		attrs []string
	}{
		{"split", []string{schema.AttrMoving}},
		{"merge", []string{schema.AttrRetired, schema.AttrLevel}},
		{"change of limits", []string{schema.AttrVersion, schema.AttrPending}},
		{leaseWrite, []string{schema.AttrLeases}},
	} {
		if slices.ContainsFunc(kind.attrs, func(attr string) bool { return slices.Contains(changes, attr) }) {
			return kind.name
		}
	}
	return ""
}

// epochOf returns the epoch that an update rests on.
func epochOf(in *dynamodb.UpdateItemInput) string {
	for name, attr := range in.ExpressionAttributeNames {
		if attr != schema.AttrEpoch || in.ConditionExpression == nil {
			continue
		}
		if _, value, found := strings.Cut(*in.ConditionExpression, name+"="); found {
			value, _, _ = strings.Cut(value, " ")
			return show(in.ExpressionAttributeValues[value])
		}
	}
	return ""
}

// tries records that a process sends an exact write.
func (p *process) tries(pk, kind string, in *dynamodb.UpdateItemInput) {
	f := p.fleet
	s := p.trying[pk+kind]
	if s == nil || f.now-s.last > givenUp+f.trip() {
		s = &streak{kind: kind, first: f.now, epoch: epochOf(in)}
		p.trying[pk+kind] = s
	}
	s.last = f.now
	s.tries++
}

// tried records the outcome of an exact write that was sent at a moment. One that is tried again
// for longer than it may be is a fault, unless the replica or the table had trouble. A copy that
// comes late does not show how long the replica tried.
func (p *process) tried(pk, kind string, sent int64, applied bool, epoch string) {
	f := p.fleet
	s := p.trying[pk+kind]
	if s == nil {
		return
	}
	took := f.now - s.first - p.suffered(s.first, f.now)
	bound := f.promptly() + f.trip() // writes of others meanwhile are seen with the first reply only
	if slow := f.now-sent > int64(longTrip*f.median); took > bound && !slow && !f.crowded() {
		f.failInTime("replica %d, item %s: a %s is tried %d times in %v, which is to land within %v", p.index, pk, s.kind, s.tries, time.Duration(took), time.Duration(bound))
	}
	if applied || s.tries == 1 && s.epoch != epoch { // planned before another exact write: it may have nothing left to do
		delete(p.trying, pk+kind)
	}
}

// crowded reports whether turns are not promised in the run: it has too many replicas, the
// table refuses for want of capacity, or limits change all the time.
func (f *fleet) crowded() bool {
	return len(f.replicas) > 4 || f.on.throttle || f.on.outage || f.on.copies || f.on.restless
}
