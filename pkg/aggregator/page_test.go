package aggregator

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The numbers of the page about the aggregator are those of the program.
func TestThePageHasTheNumbers(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "aggregator.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(text)), " ")
	rescan := int(DefaultRescan.Seconds())
	for _, want := range []string{
		fmt.Sprintf("The holder renews it every %.0f seconds.", (DefaultTerm / 3).Seconds()),
		fmt.Sprintf("takes it when released, or unchanged for %.0f seconds by its own clock", DefaultTerm.Seconds()),
		fmt.Sprintf("if that has at least two more, every %d seconds", rescan),
		fmt.Sprintf("its part of n shards after about n/2 times %d seconds", rescan),
		fmt.Sprintf("| `--flush` | `%v` |", DefaultFlushAfter),
		fmt.Sprintf("at most 3 writes in %.0f seconds", DefaultFlushAfter.Seconds()),
		fmt.Sprintf("costs %.1f writes a second with the default flush", 3/DefaultFlushAfter.Seconds()),
		fmt.Sprintf("from its end: %.0f hours or more", MinRetention.Hours()),
		fmt.Sprintf("has stood still for %.0f minutes", Patience.Minutes()),
		fmt.Sprintf("calls have failed for %.0f minutes", Patience.Minutes()),
		fmt.Sprintf("After %d,%03d refused writes of a flush", maxRefused/1000, maxRefused%1000),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("docs/aggregator.md does not say %q", want)
		}
	}
}
