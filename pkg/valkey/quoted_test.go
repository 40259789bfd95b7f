package valkey

import (
	"fmt"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/catalog"
	"github.com/ratelimit/ratelimit/test/kit/quoted"
)

// The page of guarantees quotes how often a history is asked for, and that of the store when events are archived.
func TestThePagesQuoteWhatIsTrue(t *testing.T) {
	quoted.Require(t, "../../docs/guarantees.md", fmt.Sprintf("it sends one every %d ms", followEvery.Milliseconds()))
	quoted.Require(t, "../../docs/valkey.md",
		fmt.Sprintf("%.0f to %.0f minutes after it", AuditDelay.Minutes(), (AuditDelay+catalog.AuditWindow).Minutes()),
		fmt.Sprintf("has at most %.0f minutes of events", catalog.AuditWindow.Minutes()),
	)
}
