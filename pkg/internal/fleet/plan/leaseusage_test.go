package plan_test

import (
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// TestALeaseWriteCountsUsage: the consumption that a lease write counts is added to that of the
// item, also where the same write frees the slot of another holder.
func TestALeaseWriteCountsUsage(t *testing.T) {
	b := newBench(t)
	b.land(b.lease(500, 2, 400, 400, 2000))
	b.land(b.lease(600, 3, 100, 100, 0))
	before := b.consumed()
	own := *b.state.Lease(3)
	own.Sequence++
	st := plan.NewStage(b.state, epoch+700, plan.Options{})
	if err := st.Lease(plan.LeaseWrite{Replica: 3, Seen: b.state.Lease(3), Lease: &own, Draw: []int64{100}, Usage: []int64{1234}}); err != nil {
		t.Fatal(err)
	}
	if err := st.Lease(plan.LeaseWrite{Replica: 2, Seen: b.state.Lease(2)}); err != nil {
		t.Fatal(err)
	}
	w := st.Write(b.id(3), 1)
	b.land(w)
	if got := b.consumed() - before; got != 1234 {
		t.Errorf("the item counts %d millitokens more, want 1234", got)
	}
	if got := w.Outcome(b.state); got != plan.Landed {
		t.Errorf("its outcome by the item is %d, want landed", got)
	}
	freed := *b.state
	freed.Leases = nil
	freed.Serial++
	if got := w.Outcome(&freed); got != plan.Lost {
		t.Errorf("without its slot the outcome is %d, want lost", got)
	}
}

// TestAReturnTellsItsOutcome: an image shows whether a return counted its consumption. That holds too
// when another replica freed the slot since, and when another one left an id in the same slot of ids.
func TestAReturnTellsItsOutcome(t *testing.T) {
	b := newBench(t)
	b.land(b.lease(500, 2, 400, 400, 2000))
	b.land(b.lease(600, 3, 100, 100, 0))
	held := *b.state
	returned := func(replica uint32) *plan.Write {
		st := plan.NewStage(&held, epoch+700, plan.Options{})
		if err := st.Lease(plan.LeaseWrite{Replica: replica, Seen: held.Lease(replica), Usage: []int64{77}}); err != nil {
			t.Fatal(err)
		}
		return st.Write(b.id(3), 1)
	}
	first, again, other := returned(3), returned(3), returned(2)
	freed := *first.After() // by a replica that watched the slot
	freed.Booked = held.Booked
	for name, tt := range map[string]struct {
		image *schema.Bucket
		want  plan.Outcome
	}{
		"as it was":                {&held, plan.Open},
		"it was applied":           {first.After(), plan.Landed},
		"another return of it was": {again.After(), plan.Lost},
		"another replica freed it": {&freed, plan.Dead},
		"another replica returned": {other.After(), plan.Dead},
	} {
		if got := first.Outcome(tt.image); got != tt.want {
			t.Errorf("%s: outcome %d, want %d", name, got, tt.want)
		}
	}
}

// consumed returns how much of the limit the item counts as consumed, in millitokens.
func (b *bench) consumed() int64 {
	b.Helper()
	return b.consumedOf("l")
}

// consumedOf is consumed of a limit with a name.
func (b *bench) consumedOf(limit string) int64 {
	b.Helper()
	out, err := b.db.GetItem(b.Context(), &dynamodb.GetItemInput{TableName: aws.String(tableName), Key: b.key(0).Attributes()})
	if err != nil {
		b.Fatalf("%v", err)
	}
	number, ok := out.Item[schema.LimitAttr(limit, schema.LimitConsumed)].(*types.AttributeValueMemberN)
	if !ok {
		b.Fatalf("the item counts nothing")
	}
	n, err := strconv.ParseInt(number.Value, 10, 64)
	if err != nil {
		b.Fatalf("%v", err)
	}
	return n
}
