package engine

import (
	"fmt"
	"testing"

	"github.com/ratelimit/ratelimit/test/kit/quoted"
)

// The pages of docs quote constants of the healing.
func TestThePagesQuoteWhatIsTrue(t *testing.T) {
	quoted.Require(t, "../../../../docs/guarantees.md", fmt.Sprintf("No bucket is taken from in the first %d ms", quiet.Milliseconds()), fmt.Sprintf("has not reached within %d ms", quiet.Milliseconds()))
	quoted.Require(t, "../../../../docs/valkey.md", fmt.Sprintf("In the first %d ms of a server that came back", quiet.Milliseconds()))
}
