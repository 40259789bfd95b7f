package lane

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// message is a message under way. Each kind is a type: [read], [write], [leaseWrite], [shardWrite],
// [turnWrite], and to the item of another shard [making] and [peeking]. Its goroutine changes it,
// under the lane's lock.
type message interface {
	core() *copies
	// carries returns the requests that it is for, with their write; nil = none.
	carries() *batch
	// alone reports whether nothing is planned before its end.
	alone() bool
	// after returns the state that the next write is planned on, behind head. state is the last one.
	after(head, state *schema.Bucket) *schema.Bucket
	// send sends one copy of it. The lane is not locked.
	send(ctx context.Context) (reply, error)
	// conclude takes in the reply to a copy, or its error. It reports whether the message is to be
	// sent again. The lane is locked.
	conclude(got reply, err error, now time.Time) (again bool)
}

// copies is the common part of all messages: how often and when one is sent.
type copies struct {
	asked  uint64        // the lane's count of events when it left
	at     int64         // the lane's clock when it was planned
	sent   time.Time     // when the last copy was sent
	until  time.Time     // it is sent again until then
	within time.Duration // the time of one copy
	tries  int
}

func (c *copies) core() *copies                               { return c }
func (c *copies) carries() *batch                             { return nil }
func (c *copies) alone() bool                                 { return true }
func (c *copies) after(head, _ *schema.Bucket) *schema.Bucket { return head }

// reply is the reply to one copy of a message.
type reply struct {
	item    map[string]types.AttributeValue
	left    *schema.Bucket // what a write left, if it found what it was planned on; nil = item has it
	refused bool           // the condition of a write did not hold; item is the image that refused it
}

// viewer takes in the images of the item that messages bring.
type viewer interface {
	sees(image *schema.Bucket, by *copies, now time.Time)
}

// once is the common part of exact writes that are for no request. Each is sent once: it is planned anew
// where it was not applied.
type once struct {
	copies

	write *plan.Write
}

func (o *once) after(_, _ *schema.Bucket) *schema.Bucket { return o.write.After() }

// sentOnce is a message of that kind.
type sentOnce interface {
	message
	// came takes in an image of the item.
	came(image *schema.Bucket, refused bool, now time.Time)
	// lost takes in that no image came. perhaps says that the write may have been applied.
	lost(perhaps bool, err error, now time.Time)
}
