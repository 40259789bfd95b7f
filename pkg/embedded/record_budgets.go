package embedded

import (
	"encoding/binary"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// appendBudgets appends the number of budgets, and of each the limit, the window and the tokens.
func appendBudgets(buf []byte, budgets *limiter.Budgets) []byte {
	buf = binary.AppendUvarint(buf, uint64(budgets.Len())) // #nosec G115 -- not negative
	for i := range budgets.Len() {
		b := budgets.At(i)
		buf = append(appendText(buf, b.Limit), byte(b.Window))
		buf = binary.AppendUvarint(buf, uint64(b.Tokens)) // #nosec G115 -- above 0
	}
	return buf
}

// budgets is the inverse of appendBudgets for limits. It returns nil for no budgets.
func (r *recordReader) budgets(limits *limiter.Limits) *limiter.Budgets {
	n := r.Uint()
	if n == 0 {
		return nil
	}
	var all []limiter.Budget
	for ; n > 0 && !r.Failed; n-- {
		all = append(all, limiter.Budget{Limit: r.Text(), Window: limiter.UsageWindow(r.Byte(byte(limiter.UsageMonth))), Tokens: r.amount()})
	}
	budgets, err := limiter.NewBudgets(all...)
	if err == nil {
		err = budgets.CheckLimits(limits)
	}
	r.Failed = r.Failed || err != nil
	return budgets
}

// amount reads a number of tokens.
func (r *recordReader) amount() int64 {
	n := r.Uint()
	if n > limiter.MaxTokens {
		r.Failed = true
		return 0
	}
	return int64(n) // #nosec G115 -- at most MaxTokens
}
