package schema

import (
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// text returns a lease as its slot has it: the id, and the amounts in order of the limits.
func (l *OldLease) text(id string) string {
	var b strings.Builder
	b.WriteString(id)
	for _, a := range l.Amounts {
		b.WriteString(" " + a.Limit + "=" + strconv.FormatInt(a.Millitokens, oldNumberBase))
	}
	return b.String()
}

// parseOldLease reads the text of a slot. Any other text than version 1 writes is refused.
func parseOldLease(replica, text string) (l OldLease, ok bool) {
	id, rest, found := strings.Cut(text, " ")
	if !found || id == "" || replica == "" {
		return OldLease{}, false
	}
	l = OldLease{Replica: replica, Text: text}
	for part := range strings.SplitSeq(rest, " ") {
		limit, digits, _ := strings.Cut(part, "=")
		n, err := strconv.ParseInt(digits, oldNumberBase, 64)
		if err != nil || limit == "" || n <= 0 || n > tokenbucket.MaxCapacity {
			return OldLease{}, false
		}
		if k := len(l.Amounts); k > 0 && l.Amounts[k-1].Limit >= limit {
			return OldLease{}, false
		}
		l.Amounts = append(l.Amounts, OldAmount{limit, n})
	}
	return l, l.text(id) == text
}

// lease reads a slot of an item of form 1.
func (r *oldReader) lease(attr string) {
	s, ok := r.Item[attr].(*types.AttributeValueMemberS)
	if !ok {
		r.Fail(attr, "is %s; it must be a string", TypeName(r.Item[attr]))
		return
	}
	l, ok := parseOldLease(strings.TrimPrefix(attr, attrOldLease), s.Value)
	if !ok {
		r.Fail(attr, "is %.200q; it must be an id and at least one {limit}={millitokens to the base of 36}, in order of the limits", s.Value)
		return
	}
	r.old.Leases = append(r.old.Leases, l)
}

// leased requires that the tokens of all slots are counted as out on lease. A limit
// without a balance was forgotten.
func (r *oldReader) leased() {
	slices.SortFunc(r.old.Leases, func(x, y OldLease) int { return strings.Compare(x.Replica, y.Replica) })
	for i := range r.bucket.Balances {
		b := &r.bucket.Balances[i]
		if sum := r.old.LeasedOf(b.Limit.Name); sum > b.Leased {
			r.Fail(LimitAttr(b.Limit.Name, LimitLeased), "is %d; it must be what all slots hold, at least %d", b.Leased, sum)
		}
	}
}
