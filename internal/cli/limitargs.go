package cli

import (
	"fmt"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/money"
)

// parseLimits reads NAME=RATE...
func parseLimits(args []string) (map[string]api.Limit, error) {
	all := make(map[string]api.Limit, len(args))
	for _, arg := range args {
		name, text, ok := strings.Cut(arg, "=")
		if name == "burst" || name == "max_debt" || name == "budget" {
			return nil, fmt.Errorf("%q stands outside of its limit: put quotes around both, such as \"rpm=600/minute burst 1000\"", arg)
		}
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is no limit: write NAME=RATE, such as rpm=600/minute", arg)
		}
		if _, twice := all[name]; twice {
			return nil, fmt.Errorf("limit %s is given twice", name)
		}
		l, err := api.ParseLimit(text)
		if err != nil {
			return nil, fmt.Errorf("limit %s: %w", name, err)
		}
		if l.Dollars && !money.Is(name) {
			return nil, fmt.Errorf("limit %s %s", name, money.NotMoney(name))
		}
		all[name] = l
	}
	return all, nil
}
