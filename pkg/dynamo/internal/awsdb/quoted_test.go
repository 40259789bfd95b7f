package awsdb

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// docs/guarantees.md quotes constants of the clock and of the circuit breaker.
func TestTheGuaranteesQuoteWhatIsTrue(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	guarantees := strings.Join(strings.Fields(string(text)), " ")
	seconds := func(d time.Duration) string { return fmt.Sprintf("%d s", d/time.Second) }
	for _, want := range []string{
		fmt.Sprintf("when the correction jumps by more than %s,", seconds(correctionJump)),
		fmt.Sprintf("From a difference of %s on nothing is refilled", seconds(DefaultClockTolerance)),
		fmt.Sprintf("with an ε of at most %s.", seconds(DefaultClockTolerance)),
		fmt.Sprintf("%d calls in a row have failed", outageFailures),
	} {
		if !strings.Contains(guarantees, want) {
			t.Errorf("docs/guarantees.md does not say %q", want)
		}
	}
	if JumpReplies != 3 || throttlePatience != time.Second/2 {
		t.Error("docs/guarantees.md says: three replies, and half a second of throttles")
	}
}
