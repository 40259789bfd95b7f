package items

import (
	"fmt"
	"testing"

	"github.com/ratelimit/ratelimit/test/kit/quoted"
)

// The pages quote how long an exact write waits for a replica.
func TestThePagesQuoteWhatIsTrue(t *testing.T) {
	quoted.Require(t, "../../../../docs/valkey.md", fmt.Sprintf("until a replica has them, for %d ms at most", waitForReplica.Milliseconds()))
	quoted.Require(t, "../../../../docs/metrics.md", fmt.Sprintf("had in %d ms, with durability replica", waitForReplica.Milliseconds()))
}
