package cli

import (
	"encoding/csv"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/api"
)

// usageCSV writes usage as comma-separated values (RFC 4180): a line of titles, and a line for each
// limit of each window. Names of bytes that are no UTF-8 stand as in Go. A spreadsheet would run names
// that begin as a formula does: these, and those that begin with an apostrophe, have an apostrophe before them.
type usageCSV struct{ w *csv.Writer }

// newUsageCSV returns a writer that has written the titles.
func newUsageCSV(w io.Writer) (*usageCSV, error) {
	c := continueUsageCSV(w)
	return c, c.line("window", "start", "end", "entity", "resource", "limit", "used", "events")
}

// continueUsageCSV returns a writer that continues the output of another one.
func continueUsageCSV(w io.Writer) *usageCSV { return &usageCSV{csv.NewWriter(w)} }

// Write writes the lines of a page.
func (c *usageCSV) Write(page []api.Usage) error {
	for _, u := range page {
		for _, limit := range slices.Sorted(maps.Keys(u.Used)) {
			err := c.w.Write([]string{
				string(u.Window), u.Start.UTC().Format(time.RFC3339), u.End.UTC().Format(time.RFC3339),
				inert(u.Entity.String()), inert(u.Resource.String()), inert(limit), u.Used[limit].String(), strconv.FormatInt(u.Events, 10),
			})
			if err != nil {
				return err
			}
		}
	}
	c.w.Flush()
	return c.w.Error()
}

// inert returns a cell that no spreadsheet takes for a formula. One apostrophe less is the name.
func inert(name string) string {
	if name != "" && strings.ContainsRune("=+-@\t\r\n'", rune(name[0])) {
		return "'" + name
	}
	return name
}

func (c *usageCSV) line(cells ...string) error {
	if err := c.w.Write(cells); err != nil {
		return err
	}
	c.w.Flush()
	return c.w.Error()
}
