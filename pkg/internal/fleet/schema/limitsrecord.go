package schema

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Attributes of one stored limit: l_{limit}_{one of these}.
const (
	storedPrefix    = "l_"
	storedCapacity  = "cp"  // tokens
	storedAmount    = "ra"  // tokens
	storedPeriod    = "rp"  // seconds, with up to three decimals
	storedMaxDebt   = "md"  // tokens; absent = 0
	storedUnlimited = "un"  // true, and none of the others
	storedCalendar  = "cal" // of a quota, in place of ra and rp
)

func storedAttr(limit, attr string) string { return storedPrefix + limit + "_" + attr }

// LimitsItem returns limits, or a policy, as an item.
func LimitsItem(ns string, ref limiter.Ref, rec limiter.Record, generation uint64) map[string]types.AttributeValue {
	k := KeyOfRef(ns, ref)
	indexes := NamespaceIndex(ns, k)
	if ref.Kind == limiter.RefEntityLimits {
		indexes = EntityLimitsIndexes(ns, ref.Entity, ref.Resource)
	}
	item := NewRecord(k, indexes, ref)
	item[attrLimitsVersion] = NumberAttribute(generation)
	markDisabled(ns, item, rec)
	markAlone(item, rec.Alone)
	markState(item, rec)
	if rec.OnUnavailable != limiter.Unset {
		item[attrOnUnavailable] = &types.AttributeValueMemberS{Value: rec.OnUnavailable.String()}
	}
	setBudgets(item, rec.Budgets)
	for i := range rec.Limits.Len() {
		l := rec.Limits.At(i)
		if l.Unlimited {
			item[storedAttr(l.Name, storedUnlimited)] = &types.AttributeValueMemberBOOL{Value: true}
			continue
		}
		item[storedAttr(l.Name, storedCapacity)] = NumberAttribute(l.Capacity)
		if l.Windowed() {
			item[storedAttr(l.Name, storedCalendar)] = &types.AttributeValueMemberS{Value: l.Calendar.String()}
		} else {
			item[storedAttr(l.Name, storedAmount)] = NumberAttribute(l.RefillAmount)
			item[storedAttr(l.Name, storedPeriod)] = &types.AttributeValueMemberN{Value: formatSeconds(l.RefillPeriod)}
		}
		if l.MaxDebt != 0 {
			item[storedAttr(l.Name, storedMaxDebt)] = NumberAttribute(l.MaxDebt)
		}
	}
	return item
}

// formatSeconds writes whole milliseconds as seconds; 1.5 s is "1.5".
func formatSeconds(d time.Duration) string {
	ms := d.Milliseconds()
	s := strconv.FormatInt(ms/1000, 10)
	if rest := ms % 1000; rest != 0 {
		s += strings.TrimRight(fmt.Sprintf(".%03d", rest), "0")
	}
	return s
}

// parseSeconds undoes formatSeconds.
func parseSeconds(s string) (time.Duration, bool) {
	whole, decimals, _ := strings.Cut(s, ".")
	decimals = strings.TrimRight(decimals, "0")
	const digits = "0123456789"
	if whole == "" || len(decimals) > 3 || strings.Trim(whole+decimals, digits) != "" {
		return 0, false
	}
	ms, err := strconv.ParseInt(whole+(decimals + "000")[:3], 10, 64)
	if err != nil || ms > tokenbucket.MaxPeriod {
		return 0, false
	}
	return time.Duration(ms) * time.Millisecond, true
}

// limits reads all limits of the item; nil for none.
func (r *Reader) limits() *limiter.Limits {
	names := make(map[string]bool)
	for attr := range r.Item {
		rest, found := strings.CutPrefix(attr, storedPrefix)
		if !found {
			continue
		}
		end := max(strings.LastIndexByte(rest, '_'), 0)
		switch rest[end:] {
		case "_" + storedCapacity, "_" + storedAmount, "_" + storedPeriod, "_" + storedMaxDebt, "_" + storedUnlimited, "_" + storedCalendar:
			names[rest[:end]] = true
		default:
			r.Fail(attr, "is none of a limit's, which are l_{limit}_cp, _ra, _rp, _md, _un or _cal")
		}
	}
	if len(names) == 0 {
		return nil
	}
	all := make([]limiter.Limit, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		all = append(all, r.limit(name))
	}
	if r.Fault != nil {
		return nil
	}
	limits, err := limiter.NewLimits(all...)
	if err != nil {
		r.Fail(storedPrefix+"{limit}_"+storedCapacity, "is of limits that cannot be: %v", err)
	}
	return limits
}

func (r *Reader) limit(name string) limiter.Limit {
	if _, found := r.Item[storedAttr(name, storedUnlimited)]; found {
		if !r.bool(storedAttr(name, storedUnlimited)) {
			r.Fail(storedAttr(name, storedUnlimited), "is false; it must be true or absent")
		}
		for _, attr := range []string{storedCapacity, storedAmount, storedPeriod, storedMaxDebt, storedCalendar} {
			if _, found := r.Item[storedAttr(name, attr)]; found {
				r.Fail(storedAttr(name, attr), "stands beside %s; a limit is unlimited or has numbers", storedAttr(name, storedUnlimited))
			}
		}
		return limiter.Unlimited(name)
	}
	if calendar := storedAttr(name, storedCalendar); r.Item[calendar] != nil {
		return r.maxDebt(limiter.Quota(name, r.Int(storedAttr(name, storedCapacity), 1, limiter.MaxTokens), r.calendar(calendar)))
	}
	period := storedAttr(name, storedPeriod)
	number := r.Number(period)
	if number == "" {
		return limiter.Limit{}
	}
	d, ok := parseSeconds(number)
	if !ok || d < time.Second {
		r.Fail(period, "is %s; it must be seconds, 1 to %d, with at most three decimals", number, tokenbucket.MaxPeriod/1000)
	}
	l := limiter.Custom(name, r.Int(storedAttr(name, storedCapacity), 0, limiter.MaxTokens), r.Int(storedAttr(name, storedAmount), 0, limiter.MaxTokens), d)
	return r.maxDebt(l)
}

// maxDebt returns a limit with the debt that the item has for it.
func (r *Reader) maxDebt(l limiter.Limit) limiter.Limit {
	if debt := storedAttr(l.Name, storedMaxDebt); r.Item[debt] != nil {
		l.MaxDebt = r.Int(debt, limiter.NoDebt, limiter.MaxTokens)
	}
	return l
}

func (r *Reader) calendar(attr string) limiter.Calendar {
	c, err := limiter.ParseCalendar(r.Text(attr))
	if err != nil {
		r.Fail(attr, "is no calendar: %v", err)
	}
	return c
}

func (r *Reader) policy() limiter.Policy {
	if _, found := r.Item[attrOnUnavailable]; !found {
		return limiter.Unset
	}
	text := r.Text(attrOnUnavailable)
	for _, p := range []limiter.Policy{limiter.Allow, limiter.Deny, limiter.Local} {
		if p.String() == text {
			return p
		}
	}
	r.Fail(attrOnUnavailable, "is %.100q; it must be %s, %s or %s", text, limiter.Allow, limiter.Deny, limiter.Local)
	return limiter.Unset
}
