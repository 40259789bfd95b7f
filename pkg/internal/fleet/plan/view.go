package plan

import (
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// View is the part of a state that a decision in memory needs: for each limit the
// bucket of the centre, as pkg/tokenbucket reckons with it. It is never changed.
type View struct {
	Limits  *limiter.Limits
	Centre  []tokenbucket.Bucket // by index of Limits; a limit that is unlimited has a zero one
	Params  []tokenbucket.Params // of Centre: of the parts of the centre
	Leased  bool
	Retired bool
}

// At returns the view of a state at now, or at the state's time where that is later.
// Bucket.Refill with Params brings a limit to any later time.
func At(b *schema.Bucket, now int64) *View {
	now = max(now, b.Time())
	n := b.Limits.Len()
	v := &View{
		Limits: b.Limits, Centre: make([]tokenbucket.Bucket, n), Params: make([]tokenbucket.Params, n),
		Leased: b.Leased(), Retired: b.Shard.Retired,
	}
	for i := range n {
		if b.Limits.Unlimited(i) {
			continue
		}
		of := &b.Balances[b.Find(b.Limits.At(i).Name)]
		m := newMeter(of, b.Line, now)
		v.Centre[i], v.Params[i] = m.bucket(m.fill(number{of.FullAt, of.Carried})), m.params
	}
	return v
}

// Tokens returns the millitokens that the centre has of a limit at now, if no other write
// takes or gives any.
func (v *View) Tokens(limit int, now int64) int64 {
	return v.Centre[limit].Refill(v.Params[limit], now).Tokens
}
