package dynamo

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// docs/guarantees.md quotes constants of leases.
func TestTheGuaranteesQuoteWhatIsTrue(t *testing.T) {
	text, err := os.ReadFile("../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	guarantees := strings.Join(strings.Fields(string(text)), " ")
	seconds := func(d time.Duration) string { return fmt.Sprintf("%d s", d/time.Second) }
	for _, want := range []string{
		fmt.Sprintf("At most %d replicas hold leases of one item", maxHolders),
		fmt.Sprintf("A lease ends %s after its request", seconds(leaseTerm)),
		fmt.Sprintf("is %.1f s longer", (leaseEbb - leaseTerm).Seconds()),
		fmt.Sprintf("one in %d,%03d of those", salts/1000, salts%1000),
		fmt.Sprintf("A bucket remembers %d limits that were removed", limiter.MaxDormant),
	} {
		if !strings.Contains(guarantees, want) {
			t.Errorf("docs/guarantees.md does not say %q", want)
		}
	}
	if saltLetters != 2 || choreView != time.Hour {
		t.Error("docs/guarantees.md says: two letters, an hour")
	}
}
