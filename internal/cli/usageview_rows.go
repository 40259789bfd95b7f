package cli

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// usageRow is the use of one limit in one window.
type usageRow struct {
	api.Usage

	Limit  string
	Amount api.Tokens
	Budget int64  // tokens that the limit's budget has
	From   string // place of the budget; "" = there is none, or the service does not say
	Bar    string // as long as Amount, next to the budget, else to the greatest use of the limit in the list
}

// usageRows returns a row for each limit of each window, in order of entities, resources, limits and
// starts, with bars of at most width characters. A full bar is the budget, or more of it.
func usageRows(all []api.Usage, width int) []usageRow {
	var rows []usageRow
	for _, u := range all {
		for _, limit := range slices.Sorted(maps.Keys(u.Used)) {
			rows = append(rows, usageRow{Usage: u, Limit: limit, Amount: u.Used[limit], Budget: u.Budget[limit], From: u.BudgetFrom[limit]})
		}
	}
	slices.SortStableFunc(rows, func(a, b usageRow) int { return cmp.Or(a.series(b), a.Start.Compare(b.Start)) })
	most := make(map[string]api.Tokens) // by limit
	for _, r := range rows {
		most[r.Limit] = max(most[r.Limit], r.Amount)
	}
	for i := range rows {
		full := most[rows[i].Limit]
		if b := rows[i].Budget; b > 0 {
			full = api.Tokens(b * limiter.Milli)
		}
		rows[i].Bar = bar(min(rows[i].Amount, full), full, width)
	}
	return rows
}

// series orders rows by all but the window.
func (r usageRow) series(other usageRow) int {
	return cmp.Or(cmp.Compare(r.Entity, other.Entity), cmp.Compare(r.Resource, other.Resource), strings.Compare(r.Limit, other.Limit))
}

// eighths are blocks of one to seven eighths of a character's width.
const eighths = "▏▎▍▌▋▊▉"

// bar draws n of most, above 0, as a part of width characters. An amount above 0 is seen.
func bar(n, most api.Tokens, width int) string {
	if n <= 0 {
		return ""
	}
	hi, lo := bits.Mul64(uint64(n), uint64(8*width)) // #nosec G115 -- both are above 0
	whole, _ := bits.Div64(hi, lo, uint64(most))     // #nosec G115 -- n is not above most
	parts := max(1, int(whole))                      // #nosec G115 -- at most 8*width
	text := strings.Repeat("█", parts/8)
	if rest := parts % 8; rest > 0 {
		text += string([]rune(eighths)[rest-1])
	}
	return text
}
