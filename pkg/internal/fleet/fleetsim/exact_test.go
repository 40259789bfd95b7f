package fleetsim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// streak is an exact write that is tried again and again.
type streak struct {
	kind        string
	first, last int64
	epoch       string // that its first try rested on
	tries       int
	open        int     // tries whose end the replica does not know
	others      int     // plain writes and reads of the item that the replica sent since then
	calls       []*call // of the replica to the bucket, that were open at the last try
	sent        int64   // when the replica last sent an update of the item
}

// givenUp is how long a write must not be tried to count as given up: nothing wants it any more.
const givenUp = 150 * int64(time.Millisecond)

// passedOver is how many plain writes and reads a replica sends of the item of a lease write that it does not
// try any more. A lease write that is wanted comes before them, but for one read after a lost reply. So the
// replica wants none meanwhile: the demand has become too small for a lease, or the requests too large for the
// tokens of the item.
const passedOver = 2

// limitsWrite is the kind of a write that changes the limits.
const limitsWrite = "change of limits"

// lullTrips is for how many round trips a replica sends no update of an item that wants one: another one has a
// turn, or others return their leases.
const lullTrips = 4

// dropped reports whether a replica wants a change of limits no more. Calls alone want it. Those of the last try
// are over, and the replica has sent no update of the item since then, for longer than one that wants it waits.
func (s *streak) dropped(f *fleet) bool {
	quiet := s.sent
	for _, c := range s.calls {
		if !c.over {
			return false
		}
		quiet = max(quiet, c.ended)
	}
	return s.kind == limitsWrite && s.open == 0 && f.now-quiet > lullTrips*f.trip()
}

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
	if !isExact(in) {
		return ""
	}
	changes := attrsOf(in, in.UpdateExpression)
	for _, kind := range []struct {
		name  string
		attrs []string
	}{
		{"split", []string{schema.AttrMoving}},
		{"merge", []string{schema.AttrRetired, schema.AttrLevel}},
		{limitsWrite, []string{schema.AttrVersion, schema.AttrPending}},
		{leaseWrite, []string{schema.AttrLeases}},
	} {
		if slices.ContainsFunc(kind.attrs, func(attr string) bool { return slices.Contains(changes, attr) }) {
			return kind.name
		}
	}
	return ""
}

// isExact reports whether an update rests on the serial number of the item.
func isExact(in *dynamodb.UpdateItemInput) bool {
	return slices.Contains(attrsOf(in, in.ConditionExpression), schema.AttrSerial)
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
	if s == nil || f.now-s.last > givenUp+f.trip() || s.others >= passedOver || s.dropped(f) {
		s = &streak{kind: kind, first: f.now, epoch: epochOf(in)}
		p.trying[pk+kind] = s
	}
	s.last, s.others, s.calls = f.now, 0, f.callsOf(p, pk)
	s.tries++
	s.open++
}

// callsOf returns the open calls of a process to the bucket of an item.
func (f *fleet) callsOf(p *process, pk string) (open []*call) {
	b := f.byKey[pk].bucket
	for _, c := range f.calls {
		if c.process == p && slices.ContainsFunc(c.ops, func(op limiter.Op) bool { return f.bucket(op.Bucket) == b }) {
			open = append(open, c)
		}
	}
	return open
}

// sends records that a process sends an update.
func (p *process) sends(pk string) {
	if s := p.trying[pk+limitsWrite]; s != nil {
		s.sent = p.fleet.now
	}
}

// passes records that a process sends an update that is no exact write of leases, limits or shards. A plain
// one passes over a lease write that was refused.
func (p *process) passes(pk string, in *dynamodb.UpdateItemInput) {
	if !isExact(in) && !slices.Contains(attrsOf(in, in.UpdateExpression), schema.AttrTurn) {
		p.passesOver(pk)
	}
}

// passesOver records that a process sends a message about an item that a lease write comes before.
func (p *process) passesOver(pk string) {
	if s := p.trying[pk+leaseWrite]; s != nil && s.open == 0 {
		s.others++
	}
}

// answered records that a process knows the end of a try, or waits for it no more.
func (p *process) answered(pk, kind string) {
	if s := p.trying[pk+kind]; s != nil {
		s.open = max(s.open-1, 0) // the streak may have begun since
	}
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

// A lease write is not wanted any more where its replica sends plain writes or reads instead, after the end of
// the last try. Then the next try is the first of its own. A replica that waits for a turn goes on trying.
func TestALeaseWriteIsPassedOver(t *testing.T) {
	update := func(condition, attr string) *dynamodb.UpdateItemInput {
		return &dynamodb.UpdateItemInput{
			ConditionExpression: aws.String("#0=:0"), UpdateExpression: aws.String("SET #1=:1"),
			ExpressionAttributeNames: map[string]string{"#0": condition, "#1": attr},
		}
	}
	lease, turn := update(schema.AttrSerial, schema.AttrLeases), update(schema.AttrEpoch, schema.AttrTurn)
	plain, exact := update(schema.AttrEpoch, schema.AttrLastTake), update(schema.AttrSerial, schema.AttrLastTake)
	for name, tc := range map[string]struct {
		open bool                        // the end of the first try is not known
		sent []*dynamodb.UpdateItemInput // nil is a read
		want int                         // tries of the streak
	}{
		"plain writes":                 {false, []*dynamodb.UpdateItemInput{plain, plain}, 1},
		"one plain write":              {false, []*dynamodb.UpdateItemInput{plain}, 2},
		"reads":                        {false, []*dynamodb.UpdateItemInput{nil, nil}, 1},
		"one read":                     {false, []*dynamodb.UpdateItemInput{nil}, 2},
		"a turn":                       {false, []*dynamodb.UpdateItemInput{turn, plain}, 2},
		"exact writes of requests":     {false, []*dynamodb.UpdateItemInput{exact, exact}, 2},
		"plain writes beside the try":  {true, []*dynamodb.UpdateItemInput{plain, plain}, 2},
		"plain writes beside each try": {false, []*dynamodb.UpdateItemInput{plain, lease, plain}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			p := &process{fleet: &fleet{eventLoop: &eventLoop{}}, trying: make(map[string]*streak)}
			p.tries("pk", leaseWrite, lease)
			if !tc.open {
				p.answered("pk", leaseWrite)
			}
			for _, in := range append(tc.sent, lease) {
				if in == nil {
					p.passesOver("pk")
				} else if kind := exactKind(in); kind != "" {
					p.tries("pk", kind, in)
					p.answered("pk", kind)
				} else {
					p.passes("pk", in)
				}
			}
			if got := p.trying["pk"+leaseWrite].tries; got != tc.want {
				t.Errorf("the streak has %d tries, want %d", got, tc.want)
			}
		})
	}
}

// A change of limits is dropped where the calls that wanted it are over, and the replica is quiet for longer
// than it would wait. A call that is open, or an update meanwhile, shows that it is wanted.
func TestAChangeOfLimitsIsDropped(t *testing.T) {
	const median = 1.2e6
	update := &dynamodb.UpdateItemInput{
		ConditionExpression: aws.String("#0=:0"), UpdateExpression: aws.String("SET #1=:1"),
		ExpressionAttributeNames: map[string]string{"#0": schema.AttrSerial, "#1": schema.AttrVersion},
	}
	trip := (&fleet{median: median}).trip()
	for name, tc := range map[string]struct {
		ends  int64 // when the call is over; 0 = it is open
		sends int64 // when another update is sent; 0 = none
		again int64 // when the write is tried again
		want  int   // tries of the streak
	}{
		"a call that is open":            {0, 0, 20 * trip, 2},
		"a call that was over":           {trip, 0, 6 * trip, 1},
		"a call that was over just now":  {5 * trip, 0, 6 * trip, 2},
		"an update before":               {trip, 3 * trip, 8 * trip, 1},
		"an update just now":             {trip, 5 * trip, 8 * trip, 2},
		"the call is over, and no pause": {trip, 0, 3 * trip, 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bucket{}
			f := &fleet{eventLoop: &eventLoop{}, median: median}
			f.byKey, f.byEntity = map[string]itemOf{"pk": {b, 0}}, map[string]*bucket{"e": b}
			p := &process{fleet: f, trying: make(map[string]*streak)}
			c := &call{process: p, ops: []limiter.Op{{Bucket: limiter.BucketKey{Entity: "e"}}}}
			f.calls = []*call{c}
			p.tries("pk", exactKind(update), update)
			p.sends("pk")
			p.answered("pk", limitsWrite)
			if tc.ends > 0 {
				c.over, c.ended, f.calls = true, tc.ends, nil
			}
			if f.now = tc.sends; tc.sends > 0 {
				p.sends("pk")
			}
			f.now = tc.again
			p.tries("pk", exactKind(update), update)
			if got := p.trying["pk"+limitsWrite].tries; got != tc.want {
				t.Errorf("the streak has %d tries, want %d", got, tc.want)
			}
		})
	}
}
