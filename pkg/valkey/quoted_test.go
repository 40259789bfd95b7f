package valkey

import (
	"fmt"
	"testing"

	"github.com/ratelimit/ratelimit/test/kit/quoted"
)

// The page of guarantees quotes how often a history is asked for.
func TestThePagesQuoteWhatIsTrue(t *testing.T) {
	quoted.Require(t, "../../docs/guarantees.md", fmt.Sprintf("it sends one every %d ms", followEvery.Milliseconds()))
}
