package lease

import (
	"fmt"
	"testing"

	"github.com/ratelimit/ratelimit/test/kit/quoted"
)

// docs/guarantees.md and docs/design/leases.md quote constants of leases.
func TestThePagesQuoteConstants(t *testing.T) {
	quoted.Require(t, "../../../../docs/guarantees.md",
		fmt.Sprintf("A holder stops %d s after it asked", Term/1000),
		fmt.Sprintf("unchanged for %d s and an eighth on its own clock, %.1f s.", Term/1000, ReapAfter/1000.0),
		fmt.Sprintf("At most %d replicas hold leases of one item", MaxHolders),
		fmt.Sprintf("limits worth less than %d usual requests", small),
	)
	quoted.Require(t, "../../../../docs/design/leases.md",
		fmt.Sprintf("cut into N = 1,%03d parts", Parts-1000),
		fmt.Sprintf("a term of %d s after the time before its send", Term/1000),
		fmt.Sprintf("unchanged for 9/8 of a term, %.1f s.", ReapAfter/1000.0),
		fmt.Sprintf("up to %v times its demand, and tokens for some %d ms of it", headroom, plentySpan),
		fmt.Sprintf("%v %% of the rate stay in the table", reserve*100),
		fmt.Sprintf("Tokens are for some %d ms", scarceSpan),
		fmt.Sprintf("A first lease has at most %v %% of the rate", firstRate*100),
		fmt.Sprintf("be worth %d usual requests", manyUsual),
		fmt.Sprintf("at most %d ms, or of a round trip", mostScarce/10),
		fmt.Sprintf("A lease is renewed %d ms after its grant", firstEvery),
		fmt.Sprintf("up to each %d ms while the rate is not enough, and up to each %d s while it is", mostScarce, mostPlenty/1000),
		fmt.Sprintf("at least %d ms or %v round trips apart for each holder", everyHolder, everyTrips),
		fmt.Sprintf("after %d times the mean time between its requests, but at least %d ms and at most %d s", idleGaps, idleAtLeast, idleAtMost/1000),
		fmt.Sprintf("at least %d ms. Where many go back at once", leastHeld),
		fmt.Sprintf("worth less than %d usual requests", small),
		fmt.Sprintf("tokens for 1,%03d usual requests", spare-1000),
		fmt.Sprintf("when %v requests come at once, or %v in a second", leastAtOnce, leastSteady),
	)
}
