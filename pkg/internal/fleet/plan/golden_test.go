package plan_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// readable returns the expressions of an update with names and values in their places.
func readable(in *dynamodb.UpdateItemInput) string {
	text := "if " + *in.ConditionExpression + "\n" + *in.UpdateExpression
	places := make([]string, 0, len(in.ExpressionAttributeNames)+len(in.ExpressionAttributeValues))
	for p, name := range in.ExpressionAttributeNames {
		places = append(places, p+"\x00"+name)
	}
	for p, v := range in.ExpressionAttributeValues {
		places = append(places, p+"\x00"+textOf(v))
	}
	slices.SortFunc(places, func(x, y string) int { return strings.Index(y, "\x00") - strings.Index(x, "\x00") }) // #12 before #1
	for _, place := range places {
		p, value, _ := strings.Cut(place, "\x00")
		text = strings.ReplaceAll(text, p, value)
	}
	for _, word := range []string{" SET ", " ADD ", " REMOVE ", "\nSET ", "\nADD "} {
		text = strings.ReplaceAll(text, word, "\n"+strings.TrimSpace(word)+" ")
	}
	return text
}

// quiet is a bucket of ten tokens a second that has had a take of one.
func quiet(t *testing.T, w *world) *schema.Bucket {
	t.Helper()
	limits := limitsOf(t, limiter.PerSecond("rps", 10))
	_, image := w.send(takes(t, schema.NewBucket(limits, 1, epoch), epoch, plan.Options{}, w.id(7), limiter.Spend{Limit: "rps", Take: 1000}), 0)
	return image
}

// takes returns the write of one request on a state.
func takes(t fataler, b *schema.Bucket, now int64, o plan.Options, id plan.ID, spends ...limiter.Spend) *plan.Write {
	t.Helper()
	st := plan.NewStage(b, now, o)
	_, r := op(t, b.Limits, b.Version.Generation, spends...)
	if v := st.Weigh(r); v != plan.Commutes && v != plan.Exact {
		t.Fatalf("verdict %d, want a write", v)
	}
	st.Apply(r)
	return st.Write(id, 1)
}

func TestExpressions(t *testing.T) {
	w := newWorld(t)
	b := quiet(t, w)
	id := plan.ID{Slot: 7, Write: schema.NewWriteID(7, 300)}
	spend := func(now int64, o plan.Options, sp limiter.Spend) *plan.Write { return takes(t, b, now, o, id, sp) }
	leased := plan.NewStage(b, epoch+50, plan.Options{})
	if err := leased.Lease(plan.LeaseWrite{Replica: 7, Lease: &schema.Lease{Sequence: 1, Rate: 500, Room: 250}, Draw: []int64{2200}}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		write *plan.Write
		want  string
	}{
		{"take, busy", spend(epoch+50, plan.Options{}, limiter.Spend{Limit: "rps", Take: 2000}), `if ep=1760000000000 AND b_rps_v>=17600000000500000000 AND b_rps_v<=17600000008500000000 AND lw7<>00000007012c
SET lw7=00000007012c, lt=1760000000050
ADD b_rps_v 2000000000, n 1, wcu 1, b_rps_tc 2000`},
		{"take, lift", spend(epoch+500, plan.Options{}, limiter.Spend{Limit: "rps", Take: 2000}), `if ep=1760000000000 AND b_rps_v<=17600000005000000000 AND lw7<>00000007012c
SET b_rps_v=17600000007000000000, lw7=00000007012c, lt=1760000000500
ADD n 1, wcu 1, b_rps_tc 2000`},
		{"take, lift by 20 ms", spend(epoch+95, plan.Options{Lift: 20, Guard: 10}, limiter.Spend{Limit: "rps", Take: 2000}), `if ep=1760000000000 AND b_rps_v<=17600000001150000000 AND lw7<>00000007012c
SET b_rps_v=17600000003150000000, lw7=00000007012c, lt=1760000000095
ADD n 1, wcu 1, b_rps_tc 2000`},
		{"charge", spend(epoch+50, plan.Options{}, limiter.Spend{Limit: "rps", Charge: 12000}), `if ep=1760000000000 AND b_rps_v>=17600000000500000000 AND b_rps_v<=17600000098500000000 AND lc7=0000000701
SET lc7=00000007012c, lt=1760000000050
ADD b_rps_v 12000000000, n 1, wcu 1, b_rps_tc 12000`},
		{"refund", spend(epoch+50, plan.Options{}, limiter.Spend{Limit: "rps", Refund: 300}), `if ep=1760000000000 AND lc7=0000000701
SET lc7=00000007012c
ADD b_rps_v -300000000, n 1, wcu 1, b_rps_tc -300`},
		{"grant", leased.Write(id, 1), `if ep=1760000000000 AND n=1
SET at=1760000000050, b_rps_v=17600000000700000000, bc=750, ep=1760000000001, kc=500, kt=880000000025000, ls=0000000700017d0fa0000000, n=2
ADD wcu 1`},
	} {
		if got := readable(requestOf(t, tt.write.Update(w.key(0)))); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

// TestAQuietWriteIsShort: the expressions of a take of a quiet bucket are short.
func TestAQuietWriteIsShort(t *testing.T) {
	w := newWorld(t)
	b := quiet(t, w)
	in := requestOf(t, takes(t, b, epoch+50, plan.Options{}, w.id(7), limiter.Spend{Limit: "rps", Take: 2000}).Update(w.key(0)))
	if n := len(*in.ConditionExpression); n > 60 {
		t.Errorf("the condition has %d bytes, want 60 at most: %s", n, *in.ConditionExpression)
	}
	if n := len(*in.UpdateExpression); n > 60 {
		t.Errorf("the update has %d bytes, want 60 at most: %s", n, *in.UpdateExpression)
	}
	if n := len(slices.Collect(maps.Keys(in.ExpressionAttributeValues))); n > 10 {
		t.Errorf("the write has %d values, want 10 at most", n)
	}
}
