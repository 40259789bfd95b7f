package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/api"
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
		l, err := api.ParseLimit(inTokens(text))
		if err != nil {
			return nil, fmt.Errorf("limit %s: %w", name, err)
		}
		all[name] = l
	}
	return all, nil
}

// inTokens writes amounts of dollars as tokens, see [yamlcfg.ParseTokens].
func inTokens(text string) string {
	return regexp.MustCompile(`[0-9][0-9_.]* USD\b`).ReplaceAllStringFunc(text, func(amount string) string {
		tokens, ok := yamlcfg.ParseTokens(amount)
		if !ok {
			return amount // the limit refuses it
		}
		return strconv.FormatInt(tokens, 10)
	})
}
