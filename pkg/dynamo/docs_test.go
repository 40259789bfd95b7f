package dynamo

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// Texts that quote a constant quote its value.
func TestTextsQuoteConstants(t *testing.T) {
	ms := func(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
	seconds := func(d time.Duration) string { return fmt.Sprintf("%g s", d.Seconds()) }
	const page, source = "../../docs/guarantees.md", "doc.go"
	for _, tt := range []struct{ file, want string }{
		{source, "a lane that has just denied asks for nothing for " + ms(probeQuantum)},
		{source, fmt.Sprintf("where that share is worth fewer than %s mean requests", []string{4: "four"}[worthRequests])},
		{source, "It is served for " + seconds(leaseTerm) + " after the sending of the write"},
		{page, "a holder stops " + seconds(leaseTerm) + " after it asked"},
		{page, "unchanged for " + seconds(leaseTerm) + " and an eighth"},
		{page, "that found too little asks again after " + ms(probeQuantum)},
		{page, "no more is there than refills in " + ms(probeQuantum)},
		{page, "r·" + ms(2*probeQuantum) + " together"},
		{page, "not less than " + ms(hotFor)},
		{page, "but at least " + ms(idleLease) + ", is returned"},
		{page, "or after " + seconds(leaseTerm/2) + " while it is in use"},
	} {
		text, err := os.ReadFile(tt.file)
		if err != nil {
			t.Fatal(err)
		}
		flat := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "\n//", "\n")), " ")
		if !strings.Contains(flat, tt.want) {
			t.Errorf("%s does not say %q", tt.file, tt.want)
		}
	}
}
