package lane

import (
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

const (
	// copyLife is how long after it was sent a copy of a message may be applied. A channel rests
	// for so long after a write that was sent more than once, while another one is free.
	copyLife = 10 * time.Second
	// pastTakes is how many takes of a channel are remembered that have an outcome.
	pastTakes = 4
)

// channels are those that the takes of a lane leave their ids in. A take that is applied wipes
// out the id before it in its channel. Then a late copy of that earlier one is applied once more.
type channels [schema.ChannelCount]channel

// channel is one of them.
type channel struct {
	rest time.Time      // a copy of its last take may be applied until then
	last schema.WriteID // the take whose id it has, as far as is known
	past []pastTake     // the latest that have an outcome
}

// pastTake is a take that has an outcome.
type pastTake struct {
	id     schema.WriteID
	tokens int64 // of all limits together, in millitokens
}

// next returns the channel of the next take: of those without a message under way the first that
// does not rest, or else the one that has rested longest. So an item has few ids, and stays small.
func (c *channels) next(out []message, now time.Time) int {
	best := -1
	for i := range c {
		if slices.ContainsFunc(out, func(m message) bool { return m.carries() != nil && m.carries().id.Channel == i }) { // rule: takes under way have channels of their own
			continue
		}
		if !now.Before(c[i].rest) {
			return i
		}
		if best < 0 || c[i].rest.Before(c[best].rest) { // rule: the channel rests that has rested longest
			best = i
		}
	}
	return max(best, 0)
}

// ended notes the outcome of a take of a lane that is not booked by an id of its own.
func (c *channels) ended(b *batch, applied bool) {
	if !b.write.InChannel() {
		return
	}
	of := &c[b.id.Channel]
	if b.tries > 1 {
		of.rest = b.sent.Add(copyLife)
	}
	if applied {
		of.last = b.id.Write
	}
	if len(of.past) == pastTakes {
		of.past = slices.Delete(of.past, 0, 1)
	}
	of.past = append(of.past, pastTake{b.id.Write, b.taken()})
}

// twice returns the millitokens that copies took once more, or without a caller, as an image
// of the item shows.
func (c *channels) twice(image *schema.Bucket) int64 {
	sum := int64(0)
	for slot := range image.Slots {
		for i, id := range image.Slots[slot] {
			if id != "" && id != c[i].last { // rule: a copy that is applied late is counted as lost
				sum += c[i].copied(id)
			}
		}
	}
	return sum
}

// copied returns the millitokens of a past take whose id is in its channel again.
func (c *channel) copied(id schema.WriteID) int64 {
	at := slices.IndexFunc(c.past, func(p pastTake) bool { return p.id == id })
	if at < 0 {
		return 0
	}
	c.last = id
	return c.past[at].tokens
}
