package schema

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
)

// toldPrefix, a limit, '#', the tokens of a budget, '#' and a threshold: the write that noted that it was
// reported. No limit's name has a '#'.
const toldPrefix = "t_"

func toldAttr(m aggregator.Mark) string {
	return fmt.Sprintf("%s%s#%d#%d", toldPrefix, m.Limit, m.Tokens, m.Percent)
}

// NoteTold returns the write that notes marks in a snapshot. It refuses a snapshot that has one of them, and
// one that is not there. It answers with the snapshot.
func NoteTold(ns string, of *UsageOf, marks []aggregator.Mark, by string) *ItemWrite {
	w := NewUpdate(of.Key(ns))
	w.Require(attrWindow, "=", TextAttribute(of.Window.String()))
	for _, m := range marks {
		w.RequireAbsent(toldAttr(m))
		w.Set(toldAttr(m), TextAttribute(by))
	}
	return w
}

// ParseStanding reads a usage snapshot with its reported thresholds. A note that is not in the form of
// NoteTold counts as not reported.
func ParseStanding(table string, item map[string]types.AttributeValue) (aggregator.Standing, error) {
	u, err := ParseUsage(table, item)
	if err != nil {
		return aggregator.Standing{}, err
	}
	s := aggregator.Standing{Entity: u.Entity, Resource: u.Resource, Used: make(map[string]int64, len(u.Limits)), Told: make(map[aggregator.Mark]string)}
	for _, l := range u.Limits {
		s.Used[l.Limit] = l.Tokens
	}
	for attr, v := range item {
		if name, ok := strings.CutPrefix(attr, toldPrefix); ok {
			if m, by, ok := parseTold(name, v); ok {
				s.Told[m] = by
			}
		}
	}
	return s, nil
}

func parseTold(name string, v types.AttributeValue) (m aggregator.Mark, by string, ok bool) {
	parts := strings.Split(name, "#")
	text, ok := v.(*types.AttributeValueMemberS)
	if !ok || len(parts) != 3 {
		return m, "", false
	}
	tokens, tokensErr := strconv.ParseInt(parts[1], 10, 64)
	percent, percentErr := strconv.Atoi(parts[2])
	return aggregator.Mark{Limit: parts[0], Tokens: tokens, Percent: percent}, text.Value, tokensErr == nil && percentErr == nil
}
