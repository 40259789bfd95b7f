package rls

import (
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// call is one call from the wire to the answer. Calls are pooled: the next call overwrites
// everything in it.
type call struct {
	request
	ruling

	consumes bool            // a take of the plan can be denied
	books    bool            // a take of the plan is a charge or a refund
	booked   limiter.Request // the charges and refunds of a call that can never be admitted
	part     part            // of a call that is decided in parts

	shadow  limiter.Decision
	tried   limiter.Request // by the limits that are tried
	shadows []shadowResult

	released    bool         // a Commit settled its reservation
	corrected   []correction // by it
	reserved    reserved
	settlements []settlement // one for each of plan.Settlements
	holdings    []limiter.Holding

	out    []byte // the encoded answer
	status int    // of it over HTTP
}

// correction is the use of a limit beyond its reserved amount; below 0 is refunded. The limit is of a limitador file.
type correction struct {
	rule   *descriptor.Rule
	amount limiter.Consumption
}

// maxPooled bounds the size of a request whose call is used again. The memory of a larger call is
// left to the garbage collector.
const (
	maxPooled        = 64 << 10 // bytes on the wire
	maxPooledEntries = 1000
)

// shadowResult is the decision of a rule in shadow mode, or of limits that are tried.
type shadowResult struct {
	rule       *descriptor.Rule
	descriptor int // index in the call
	denied     bool
	limit      string // that would have denied; "" when no limit would

	limited bool // with status, of a rule of an envoyproxy/ratelimit file
	status  limiter.LimitStatus
}

// modes notes the modes of the plan's takes.
func (c *call) modes() {
	c.consumes, c.books = false, false
	for i := range c.plan.Request.Takes {
		if c.plan.Request.Takes[i].Mode == limiter.Consume {
			c.consumes = true
		} else {
			c.books = true
		}
	}
}

// part is a request for some of the takes of a plan, and the working memory for it.
type part struct {
	request limiter.Request
	index   []int                 // index in the plan of each of its takes
	others  []limiter.LimitStatus // of the takes that are not in it
	look    bool                  // it peeks for each take; those of envoyproxy/ratelimit files have one limit each
}
