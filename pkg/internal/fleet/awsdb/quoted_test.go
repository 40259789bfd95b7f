package awsdb

import (
	"fmt"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/kit/quoted"
)

// docs/guarantees.md quotes constants of the clock and of the circuit breaker.
func TestTheGuaranteesQuoteWhatIsTrue(t *testing.T) {
	seconds := func(d time.Duration) string { return fmt.Sprintf("%d s", d/time.Second) }
	quoted.Require(t, "../../../../docs/guarantees.md",
		fmt.Sprintf("when the correction jumps by more than %s,", seconds(correctionJump)),
		fmt.Sprintf("From a difference of %s on nothing is written or refilled", seconds(DefaultClockTolerance)),
		fmt.Sprintf("with an ε of at most %s.", seconds(DefaultClockTolerance)),
		fmt.Sprintf("%d calls in a row have failed", outageFailures),
	)
	if JumpReplies != 3 || throttlePatience != time.Second/2 {
		t.Error("docs/guarantees.md says: three replies, and half a second of throttles")
	}
}
