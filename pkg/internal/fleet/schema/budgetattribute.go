package schema

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// budgetPrefix begins the attributes of the budgets of stored limits, in tokens: b_{limit}_{hour, day or month}.
// A program that does not know them ignores them, and writes the item without them.
const budgetPrefix = "b_"

func budgetAttr(b limiter.Budget) string { return budgetPrefix + b.Limit + "_" + b.Window.String() }

// setBudgets puts budgets into the item of their limits.
func setBudgets(item map[string]types.AttributeValue, budgets *limiter.Budgets) {
	for i := range budgets.Len() {
		b := budgets.At(i)
		item[budgetAttr(b)] = NumberAttribute(b.Tokens)
	}
}

// budgets reads the budgets of limits of the item; nil for none.
func (r *Reader) budgets(limits *limiter.Limits) *limiter.Budgets {
	var all []limiter.Budget
	for attr := range r.Item {
		rest, found := strings.CutPrefix(attr, budgetPrefix)
		if !found {
			continue
		}
		end := max(strings.LastIndexByte(rest, '_'), 0)
		w, err := limiter.ParseUsageWindow(strings.TrimPrefix(rest[end:], "_"))
		if err != nil {
			r.Fail(attr, "is no budget's, which are b_{limit}_hour, _day or _month")
			return nil
		}
		all = append(all, limiter.Budget{Limit: rest[:end], Window: w, Tokens: r.Int(attr, 1, limiter.MaxTokens)})
	}
	if r.Fault != nil {
		return nil
	}
	budgets, err := limiter.NewBudgets(all...)
	if err == nil {
		err = budgets.CheckLimits(limits)
	}
	if err != nil {
		r.Fail(budgetPrefix+"{limit}_{window}", "is of budgets that cannot be: %v", err)
		return nil
	}
	return budgets
}
