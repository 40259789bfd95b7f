package rls

import (
	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// state is the configuration that calls use. A call sees one state as a whole.
type state struct {
	rules   *descriptor.Rules
	options Options
	series  *series
	asked   *descriptor.AskedRules
	log     *unmatchedLog

	files []fileSeries // of fileMetrics, by Rule.Index
}

// take returns the series of a take of an outcome.
func (st *state) take(c *call, o *descriptor.Outcome, take int) *ruleSeries {
	if take < len(c.plan.Applied) {
		return st.series.matched[c.plan.Applied[take].Index()]
	}
	return st.of(c, o)
}

// of returns the series of an outcome.
func (st *state) of(c *call, o *descriptor.Outcome) *ruleSeries {
	switch {
	case o.Rule != nil:
		return st.series.matched[o.Rule.Index()]
	case c.plan.Domain != nil:
		return st.series.unmatched[c.plan.Domain.Name()]
	default:
		return st.series.unknown
	}
}
