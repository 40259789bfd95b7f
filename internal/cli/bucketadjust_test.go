package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/pkg/api"
)

func TestReadTokens(t *testing.T) {
	for text, want := range map[string]api.Tokens{
		"0.5": 500, "-1": -1000, "1_000": 1_000_000, "-1_000.25": -1_000_250, "1.50 USD": 1_500_000_000, "-1_000 USD": -1_000_000_000_000,
	} {
		if got, err := readTokens(text); got != want || err != nil {
			t.Errorf("readTokens(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1__0", "_1", "1_", "1_.5", "1.0_0", "-_1", "1__0 USD", "1.5 EUR"} {
		if got, err := readTokens(text); err == nil {
			t.Errorf("readTokens(%q) = %v; want an error", text, got)
		}
	}
}

// Money that is not in dollars, or written in another way, is told how it is written.
func TestAmountSaysHowMoneyIsWritten(t *testing.T) {
	for _, text := range []string{"20USD", "-20USD", "20 EUR", "20 usd"} {
		var change api.BucketChange
		err := amount(&cobra.Command{}, "top-up", []string{text}, "usd", &change)
		if err == nil || !strings.Contains(err.Error(), "written like 20 USD") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A number that is below a cent is probably one of dollars.
func TestAmountNotesLessThanACent(t *testing.T) {
	for text, noted := range map[string]bool{"5": true, "9999": true, "10000": false, "0": false, "0.005 USD": false} {
		var change api.BucketChange
		var notes strings.Builder
		cmd := new(cobra.Command)
		cmd.SetErr(&notes)
		if err := amount(cmd, "top-up", []string{text}, "usd", &change); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if got := strings.Contains(notes.String(), `USD" for dollars`); got != noted {
			t.Errorf("%q: the notes are %q", text, notes.String())
		}
	}
}
