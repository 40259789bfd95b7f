package aggregator

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Sequence is a position in one shard of a stream: a decimal number of any length. "" is in
// front of all.
type Sequence string

// Compare orders positions of one shard.
func (s Sequence) Compare(other Sequence) int {
	a, b := strings.TrimLeft(string(s), "0"), strings.TrimLeft(string(other), "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// Bucket names the entity and the resource of a bucket, for which all its shards and variants
// count together. The names have the form that they have in keys of the table.
type Bucket struct {
	Namespace        string // id of the namespace
	Entity, Resource string
}

// Image is the part of a bucket's item that usage is made of.
type Image struct {
	Consumed map[string]int64 // by limit: net millitokens since the item was made
	Taken    int64            // time of the latest take or charge, Unix ms; 0 = none
	Exact    int64            // time of the latest other write, Unix ms; 0 = none

	// Splitting says that the shard was split, and that its other half may not be there yet.
	Splitting bool
}

// Record is one write of an item, as a stream has it.
type Record struct {
	Sequence Sequence
	Key      string    // of the item, for people
	Time     time.Time // of the write, to the second
	Bucket   Bucket
	Item     string // of the shard of the bucket, see [Splits]; "" = the record is not of a bucket
	Names    Names
	Old, New *Image   // nil = there was, or is, no item
	Other    bool     // of another item than a bucket's: there is nothing to count
	Expired  *Expired // an audit event for the archive, of another item than a bucket's; nil = none
	Problem  error    // not nil = the record cannot be read
}

// Expired is an audit event that the database removed because its time was over, or that will expire: a [Source]
// has each event once.
type Expired struct {
	Namespace string             // id
	Event     limiter.AuditEvent // with a problem, only its ID
	Problem   error              // not nil = the event cannot be read; Item has it
	Item      map[string]any     // all attributes, with a problem
}

// Names are the names of a bucket in full, where its item has them; "" = it has not.
type Names struct{ Entity, Resource string }

// Years that usage is booked to. A time out of them counts as none.
const (
	minYear = 1970
	maxYear = 9999
)

func booked(at time.Time) bool { return at.Year() >= minYear && at.Year() <= maxYear }

// used returns the millitokens that the write consumed, by limit; nil = none. An item that is gone
// has consumed nothing more, and so has a limit that its item forgot.
func (r *Record) used() map[string]int64 {
	if r.New == nil {
		return nil
	}
	var used map[string]int64
	for limit, now := range r.New.Consumed {
		before := int64(0)
		if r.Old != nil {
			before = r.Old.Consumed[limit]
		}
		if now == before {
			continue
		}
		if used == nil {
			used = make(map[string]int64, len(r.New.Consumed))
		}
		used[limit] = limiter.SaturatingSum(now, -before)
	}
	return used
}

// errNoTime says that neither the item nor the record has a time to book to.
var errNoTime = errors.New("the record has no time of a write")

// at returns the time that the consumption is booked to: that of the decision where the item has a plausible
// one, else that of the write. misdated says that the decision's is not plausible. ok is false where both are
// none.
func (r *Record) at() (at time.Time, misdated, ok bool) {
	old := r.Old
	if old == nil {
		old = &Image{}
	}
	for _, ms := range []struct{ now, before int64 }{{r.New.Taken, old.Taken}, {r.New.Exact, old.Exact}} {
		if ms.now == ms.before {
			continue
		}
		at := time.UnixMilli(ms.now).UTC()
		if booked(at) && r.plausible(at) {
			return at, false, true
		}
		misdated = true
	}
	at = r.Time.UTC()
	return at, misdated, booked(at)
}

// Bounds of the time of a decision: how far it may be from that of its write. Clocks of replicas differ a little, and
// a late decision is written with its own time.
const (
	mostAhead  = 10 * time.Minute
	mostBehind = 24 * time.Hour
)

// plausible reports whether the time of a decision can be right. Where the write has no time it can.
func (r *Record) plausible(at time.Time) bool {
	ahead := at.Sub(r.Time)
	return !booked(r.Time.UTC()) || r.Time.IsZero() || ahead <= mostAhead && ahead >= -mostBehind
}
