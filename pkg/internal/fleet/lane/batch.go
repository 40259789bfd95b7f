package lane

import (
	"slices"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// batch is the requests of one write, while it is under way.
type batch struct {
	copies

	write   *plan.Write
	id      plan.ID
	actors  []*Request
	books   bool // it has charges or refunds
	solo    bool // no other message was under way when it was sent
	first   bool // no other is sent before its end
	outcome outcome
}

// outcome is how far the outcome of a write is known while it is under way.
type outcome uint8

const (
	awaitsReply outcome = iota
	unknown             // a copy had no reply; the write is sent again
	sought              // the same, and the item is read for it
)

func (b *batch) carries() *batch { return b }
func (b *batch) alone() bool     { return b.write.Exact() }

// after adds the write, unless the state has it.
func (b *batch) after(head, state *schema.Bucket) *schema.Bucket {
	switch {
	case head == nil, b.write.Exact():
		return b.write.After()
	case b.shown(state):
		return head
	}
	return b.write.On(head)
}

// shown reports whether a state has the id of the write.
func (b *batch) shown(state *schema.Bucket) bool {
	return state != nil && (state.Slots[b.id.Slot][b.id.Channel] == b.id.Write || state.Booked[b.id.Slot] == b.id.Write)
}

// outcomeIn returns the outcome of the write by an image of the item.
func (b *batch) outcomeIn(image *schema.Bucket) plan.Outcome {
	if image == nil {
		return plan.Open
	}
	return b.write.Outcome(image)
}

// wanted reports whether the write would be sent again for any of its requests.
func (b *batch) wanted() bool {
	return slices.ContainsFunc(b.actors, func(r *Request) bool { return r.state != sentLeft || !r.Keep })
}

// takes returns the tokens of a limit that the write takes.
func (b *batch) takes(limit string) int64 {
	sum := int64(0)
	for _, r := range b.actors {
		for i := range r.Spends {
			if sp := &r.Spends[i]; sp.Limit == limit {
				sum = min(sum+max(sp.Take+sp.Cost-sp.Give, 0), most)
			}
		}
	}
	return sum
}

// taken returns the tokens of all limits that the write takes, in millitokens.
func (b *batch) taken() int64 {
	sum := int64(0)
	for _, r := range b.actors {
		sum = min(sum+r.taken(), most)
	}
	return sum
}

// taken returns the tokens of all limits that a write takes for a request, in millitokens.
func (r *Request) taken() int64 {
	if !r.Admitted {
		return 0
	}
	sum := int64(0)
	for i := range r.Spends {
		sum = min(sum+r.Spends[i].Take, most)
	}
	return sum
}

// maxStrays bounds the strays of a lane. The oldest is forgotten beyond it.
const maxStrays = 8

// stray is a batch with charges or refunds of which a copy was refused, while another copy may be
// applied yet: a proxy may double a message. Its requests are planned anew. Each write that books
// something is pinned to the one before it. So the item takes one of them at most.
type stray struct {
	*batch

	actors []*Request // without those that the lease keeps a part for
	taken  []int64    // by actor, in the write: of all limits, in millitokens
}
