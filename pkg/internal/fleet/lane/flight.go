package lane

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// flight is a message under way. Its goroutine changes it, under the lane's lock.
type flight struct {
	write  *plan.Write // nil: a read
	id     plan.ID
	actors []*Request
	exact  bool
	lease  *lease.Plan // that the write carries out; nil = none
	report *Report     // of the consumption from the lease, in the same write; nil = none
	other  message     // to the item of another shard; nil = to that of the lane
	done   func()      // called when the write was applied; nil = nothing
	reaps  int64       // leases of other replicas that the write ends
	books  bool
	solo   bool // no other was under way when it was sent
	first  bool // no other is sent before its end
	once   bool // it is never sent again
	turn   bool // it asks other replicas for a turn
	asks   bool // the item is read to find the outcome of the write
	asked  uint64
	at     int64         // the lane's clock when it was planned
	sent   time.Time     // when the last copy was sent
	until  time.Time     // it is sent again until then
	within time.Duration // the time of one copy
	tries  int
	doubt  bool // the outcome of a copy is unknown
}

// message is a message to the item of another shard.
type message interface {
	// send sends one copy of it. The lane is not locked.
	send(ctx context.Context) (reply, error)
	// conclude takes in its reply, or its error. The lane is locked.
	conclude(got reply, err error, now time.Time)
}

// reply is the reply to one copy of a message.
type reply struct {
	item    map[string]types.AttributeValue
	refused bool // the condition of a write did not hold; item is the image that refused it
}

// shown reports whether a state has the id of the write.
func (f *flight) shown(state *schema.Bucket) bool {
	return state != nil && f.write != nil && (state.Slots[f.id.Slot][f.id.Channel] == f.id.Write || state.Booked[f.id.Slot] == f.id.Write)
}

// outcome returns the outcome of a write by an image of the item.
func (f *flight) outcome(image *schema.Bucket) plan.Outcome {
	if image == nil {
		return plan.Open
	}
	return f.write.Outcome(image)
}

// wanted reports whether a write would be sent again for any of its requests.
func (f *flight) wanted() bool {
	return slices.ContainsFunc(f.actors, func(r *Request) bool { return r.claim != left || r.undo })
}

// takes returns the tokens of a limit that a write takes.
func (f *flight) takes(limit string) int64 {
	sum := int64(0)
	for _, r := range f.actors {
		for i := range r.Spends {
			if sp := &r.Spends[i]; sp.Limit == limit {
				sum = min(sum+max(sp.Take+sp.Cost-sp.Give, 0), most)
			}
		}
	}
	return sum
}

// taken returns the tokens of all limits that a write takes, in millitokens.
func (f *flight) taken() int64 {
	sum := int64(0)
	for _, r := range f.actors {
		if !r.Admitted {
			continue
		}
		for i := range r.Spends {
			sum = min(sum+r.Spends[i].Take, most)
		}
	}
	return sum
}

// maxStrays bounds the strays of a lane. The oldest is forgotten beyond it.
const maxStrays = 8

// stray is a write with charges or refunds of which a copy was refused, while another copy may be
// applied yet: a proxy may double a message. Its requests are planned anew. Each write that books
// something is pinned to the one before it. So the item takes one of them at most.
type stray struct {
	*flight

	actors []*Request // without those that the lease keeps a part for
}
