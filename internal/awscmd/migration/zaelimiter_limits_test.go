package migration

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// attributes makes an item of numbers, texts and flags.
func attributes(all map[string]any) item {
	i := item{}
	for name, value := range all {
		switch v := value.(type) {
		case int:
			i[name] = &types.AttributeValueMemberN{Value: strconv.Itoa(v)}
		case string:
			i[name] = &types.AttributeValueMemberS{Value: v}
		case bool:
			i[name] = &types.AttributeValueMemberBOOL{Value: v}
		}
	}
	return i
}

func TestLimitsOf(t *testing.T) {
	for name, tt := range map[string]struct {
		item     map[string]any
		want     string
		problems []string // parts of them
	}{
		"since 0.10":     {item: map[string]any{"l_rpm_cp": 150, "l_rpm_ra": 100, "l_rpm_rp": 60}, want: "rpm 100/minute burst 150"},
		"before 0.10":    {item: map[string]any{"l_rpm_cp": 100, "l_rpm_bx": 150, "l_rpm_ra": 100, "l_rpm_rp": 60}, want: "rpm 100/minute burst 150"},
		"awkward names":  {item: map[string]any{"l_a_cp_cp": 1, "l_a_cp_ra": 1, "l_a_cp_rp": 1, "l_b-c.d_cp": 2, "l_b-c.d_ra": 2, "l_b-c.d_rp": 1}, want: "a_cp 1/second, b-c.d 2/second"},
		"soft":           {item: map[string]any{"l_rpm_cp": 1, "l_rpm_ra": 1, "l_rpm_rp": 1, "l_rpm_soft": true}, want: "rpm unlimited", problems: []string{"becomes unlimited"}},
		"schedule":       {item: map[string]any{"l_rpm_cp": 1, "l_rpm_ra": 1, "l_rpm_rp": 1, "l_rpm_sched": "1h22"}, want: "rpm 1/second", problems: []string{"schedule"}},
		"quota":          {item: map[string]any{"l_day_cp": 9, "l_day_ra": 0, "l_day_rp": 1, "l_day_rsched": "1m0h0"}, problems: []string{"quota"}},
		"window":         {item: map[string]any{"w_s_cp": 9, "w_s_ra": 0, "w_s_rp": 1, "w_s_rsa": 60, "l_rpm_cp": 1, "l_rpm_ra": 1, "l_rpm_rp": 1}, want: "rpm 1/second", problems: []string{"quota"}},
		"missing":        {item: map[string]any{"l_rpm_cp": 9, "l_rpm_ra": 1}, problems: []string{"l_rpm_rp"}},
		"no number":      {item: map[string]any{"l_rpm_cp": "9", "l_rpm_ra": 1, "l_rpm_rp": 1}, problems: []string{"l_rpm_cp"}},
		"period":         {item: map[string]any{"l_rpm_cp": 9, "l_rpm_ra": 1, "l_rpm_rp": 1 << 40}, problems: []string{"period"}},
		"capacity":       {item: map[string]any{"l_rpm_cp": -9, "l_rpm_ra": 1, "l_rpm_rp": 1}, problems: []string{"capacity"}},
		"reserved":       {item: map[string]any{"l_wcu_cp": 9, "l_wcu_ra": 1, "l_wcu_rp": 1}, problems: []string{"reserved"}},
		"not about them": {item: map[string]any{"resource": "gpt", "config_version": 1, "l__cp": 5}},
	} {
		limits, problems := limitsOf(attributes(tt.item))
		got := make([]string, 0, limits.Len())
		for i := range limits.Len() {
			got = append(got, limits.At(i).Name+" "+limits.At(i).String())
		}
		if g := strings.Join(got, ", "); g != tt.want {
			t.Errorf("%s: got %s, want %s", name, g, tt.want)
		}
		if len(problems) != len(tt.problems) {
			t.Errorf("%s: the problems are %v", name, problems)
			continue
		}
		for i, want := range tt.problems {
			if !strings.Contains(problems[i].what, want) {
				t.Errorf("%s: %s; want %s", name, problems[i].what, want)
			}
		}
	}
}

// More limits than a bucket can have are a problem of the level.
func TestTooManyLimits(t *testing.T) {
	all := map[string]any{}
	for i := range limiter.MaxLimits + 1 {
		for field, n := range map[string]int{"cp": 1, "ra": 1, "rp": 1} {
			all[fmt.Sprintf("l_x%d_%s", i, field)] = n
		}
	}
	limits, problems := limitsOf(attributes(all))
	if limits.Len() != 0 || len(problems) != 1 || !strings.Contains(problems[0].what, "17 limits") {
		t.Errorf("%d limits, %v", limits.Len(), problems)
	}
}

const bucketTime = 1_760_000_000_000

// A balance is refilled, and that of shards is the sum of their shares.
func TestBalance(t *testing.T) {
	shard := func(count, tokens int) map[string]any {
		return map[string]any{"shard_count": count, "rf": bucketTime, "b_rpm_tk": tokens, "b_rpm_cp": 60_000, "b_rpm_ra": 60_000, "b_rpm_rp": 60_000, "b_wcu_tk": 1, "b_wcu_cp": 1000, "b_wcu_ra": 1000, "b_wcu_rp": 1000}
	}
	for name, tt := range map[string]struct {
		items []map[string]any
		want  int64 // millitokens; full = there is no balance
	}{
		"one":              {[]map[string]any{shard(1, 10_000)}, 20_000},
		"debt":             {[]map[string]any{shard(1, -70_000)}, -60_000},
		"full by now":      {[]map[string]any{shard(1, 50_000)}, 60_000},
		"two of two":       {[]map[string]any{shard(2, 0), shard(2, 15_000)}, 15_000 + 10_000},
		"one of four":      {[]map[string]any{shard(4, 0)}, 10_000 + 3*15_000},
		"more than shares": {[]map[string]any{shard(2, 55_000), shard(2, 0)}, 30_000 + 10_000},
		"late to know":     {[]map[string]any{shard(1, 0), shard(2, 0)}, 10_000},
		"old":              {[]map[string]any{{"rf": bucketTime, "b_rpm_tk": 0, "b_rpm_cp": 30_000, "b_rpm_bx": 60_000, "b_rpm_ra": 60_000, "b_rpm_rp": 60_000}}, 10_000},
		"only wcu":         {[]map[string]any{{"rf": bucketTime, "b_wcu_tk": 1, "b_wcu_cp": 1000, "b_wcu_ra": 1000, "b_wcu_rp": 1000}}, 60_000},
		"a quota":          {[]map[string]any{{"rf": bucketTime, "b_rpm_tk": 1, "b_rpm_cp": 1000, "b_rpm_ra": 0, "b_rpm_rp": 1000}}, 60_000},
		"broken":           {[]map[string]any{{"rf": "x", "b_rpm_tk": 1}}, 60_000},
	} {
		var s state
		for _, i := range tt.items {
			s.add(attributes(i))
		}
		b, used := s.balance("e", "r", bucketTime+10_000)
		if want := tt.want != 60_000; used != want {
			t.Errorf("%s: there is a balance: %t", name, used)
			continue
		}
		if used && (len(b.Limits) != 1 || b.Limits[0].Name != "rpm" || b.Limits[0].Bucket.Refill(b.Limits[0].Params, bucketTime+10_000).Tokens != tt.want) {
			t.Errorf("%s: got %+v, want %d", name, b.Limits, tt.want)
		}
	}
}

// FuzzBalance: no item makes a balance out of range.
func FuzzBalance(f *testing.F) {
	f.Add(1, 10, 60, 60, 60_000, 0)
	f.Add(3, -1<<60, 60, 60, 60_000, 0)
	f.Fuzz(func(t *testing.T, shards, tokens, capacity, amount, period, refilled int) {
		var s state
		for range 3 {
			s.add(attributes(map[string]any{"shard_count": shards, "rf": refilled, "b_x_tk": tokens, "b_x_cp": capacity, "b_x_ra": amount, "b_x_rp": period}))
		}
		if b, used := s.balance("e", "r", bucketTime); used {
			l := b.Limits[0]
			if l.Params.Validate() != nil || l.Bucket.Tokens > l.Params.Capacity || l.Bucket.Tokens < -tokenbucket.MaxAmount {
				t.Errorf("%+v", l)
			}
		}
	})
}

func TestCheckSchema(t *testing.T) {
	for version, known := range map[string]bool{
		"0.8.0": true, "0.9.0": true, "0.10.0": true, "0.10.3": true,
		"0.7.0": false, "0.11.0": false, "1.0.0": false, "": false, "x": false, "0.x.0": false, "0.9": false,
	} {
		if _, _, err := checkSchema("t", version); (err == nil) != known {
			t.Errorf("%q: %v", version, err)
		}
	}
}

func TestFlagsOf(t *testing.T) {
	got := flagsOf(attributes(map[string]any{"disabled": "bypass", "cascade": false}))
	got = append(got, flagsOf(attributes(map[string]any{"disabled": true}))...)
	got = append(got, flagsOf(attributes(map[string]any{"disabled": false}))...)
	want := []string{
		"is exempt from limits (bypass), which is not taken over",
		"has a cascade of its own, which is not taken over: the entity's stands for each resource",
		"is disabled, which is not taken over: disable it again",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
