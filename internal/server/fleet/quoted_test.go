package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/internal/server/fleet"
	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/test/kit/quoted"
)

// The pages for operators quote the times of reports.
func TestThePagesQuoteWhatIsTrue(t *testing.T) {
	quoted.Require(t, "../../../docs/operate.md",
		fmt.Sprintf("Each replica writes a report to the store every %d s", fleet.Every/time.Second),
		fmt.Sprintf("Reads are kept for %d s", fleet.Fresh/time.Second),
		fmt.Sprintf("or is behind or silent for more than %d minutes", fleet.MaxLag/time.Minute),
	)
	quoted.Require(t, "../../../docs/aggregator.md",
		fmt.Sprintf("Each process reports to the table every %d s", aggregator.ReportEvery/time.Second),
		fmt.Sprintf("shows the newest report for %d days, for a day after a stop in order", aggregator.ProgressAge/(24*time.Hour)),
	)
}
