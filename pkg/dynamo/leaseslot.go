package dynamo

import (
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// attrHolding and the name of a replica's run is the attribute of a lease's slot:
// "{id} {limit}={q} {limit}={q} ...", the limits in order and each q, in millitokens,
// to the base of 36. No two leases of a replica have the same id, so a condition on
// the text is one on all that it says, and fails once anything of it has changed.
const attrHolding = "ls_"

// amount is a number of millitokens of one limit.
type amount struct {
	limit  string
	tokens int64
}

// holding is the lease of one replica, as the item has it.
type holding struct {
	replica string
	id      string
	text    string   // of the slot
	amounts []amount // out on this lease, each above 0, in order of the limits' names
}

// holdingAttr returns the name of a slot.
func holdingAttr(replica string) string { return attrHolding + replica }

// of returns how much of a limit is out on the lease.
func (h *holding) of(limit string) int64 { return amountOf(h.amounts, limit) }

func amountOf(all []amount, limit string) int64 {
	for i := range all {
		if all[i].limit == limit {
			return all[i].tokens
		}
	}
	return 0
}

// holding returns the lease of a replica, or nil.
func (v *view) holding(replica string) *holding {
	for i := range v.leases {
		if v.leases[i].replica == replica {
			return &v.leases[i]
		}
	}
	return nil
}

// newHolding returns a lease. What is not above 0 is left out; with nothing left it
// has no text.
func newHolding(replica, id string, amounts []amount) holding {
	h := holding{replica: replica, id: id}
	for _, a := range amounts {
		if a.tokens > 0 {
			h.amounts = append(h.amounts, a)
		}
	}
	if len(h.amounts) == 0 {
		return h
	}
	slices.SortFunc(h.amounts, func(x, y amount) int { return strings.Compare(x.limit, y.limit) })
	var b strings.Builder
	b.WriteString(id)
	for _, a := range h.amounts {
		b.WriteString(" " + a.limit + "=" + strconv.FormatInt(a.tokens, 36))
	}
	h.text = b.String()
	return h
}

// parseHolding reads the text of a slot. It takes only what newHolding writes.
func parseHolding(replica, text string) (h holding, ok bool) {
	id, rest, found := strings.Cut(text, " ")
	if !found || id == "" || replica == "" {
		return holding{}, false
	}
	var amounts []amount
	for part := range strings.SplitSeq(rest, " ") {
		limit, digits, _ := strings.Cut(part, "=")
		n, err := strconv.ParseInt(digits, 36, 64)
		if err != nil || limit == "" || n <= 0 || n > tokenbucket.MaxCapacity {
			return holding{}, false
		}
		if len(amounts) > 0 && amounts[len(amounts)-1].limit >= limit {
			return holding{}, false
		}
		amounts = append(amounts, amount{limit, n})
	}
	h = newHolding(replica, id, amounts)
	return h, h.text == text
}

// holding reads a slot of the item.
func (r bucketReader) holding(attr string, v *view) {
	s, ok := r.Item[attr].(*types.AttributeValueMemberS)
	if !ok {
		r.Fail(attr, "is %s; it must be a string", schema.TypeName(r.Item[attr]))
		return
	}
	h, ok := parseHolding(strings.TrimPrefix(attr, attrHolding), s.Value)
	if !ok {
		r.Fail(attr, "is %q; it must be an id and at least one {limit}={millitokens to the base of 36}, in order of the limits", s.Value)
		return
	}
	v.leases = append(v.leases, h)
}

// leased requires of the slots that what they hold is counted as out on lease.
func (r bucketReader) leased(v *view) {
	slices.SortFunc(v.leases, func(x, y holding) int { return strings.Compare(x.replica, y.replica) })
	sums := make(map[string]int64)
	for i := range v.leases {
		for _, a := range v.leases[i].amounts {
			sums[a.limit] += a.tokens
			if b := v.any(a.limit); b != nil && sums[a.limit] > b.leased { // without balance it was forgotten
				r.Fail(schema.LimitAttr(a.limit, schema.LimitLeased), "is %d; it must be what all slots hold, at least %d", b.leased, sums[a.limit])
			}
		}
	}
}
