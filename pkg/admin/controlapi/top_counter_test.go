package controlapi_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
)

// start is the begin of a step.
func start() time.Time { return time.Unix(60*1_000_000, 0) }

func key(entity string) controlapi.TopKey {
	return controlapi.TopKey{Namespace: "default", Entity: entity, Resource: "api", Limit: "rpm"}
}

func Example() {
	c := controlapi.NewTopCounter()
	now := time.Unix(0, 0)
	for range 3 {
		c.Add(now, controlapi.TopKey{Namespace: "default", Entity: "key/a", Resource: "gpt-4", Limit: "rpm"}, 1000)
	}
	c.Add(now, controlapi.TopKey{Namespace: "default", Entity: "key/b", Resource: "gpt-4", Limit: "rpm"}, 1000)
	for _, row := range c.Top(now, 10, controlapi.TopFilter{}) {
		fmt.Println(row.Entity, row.Events, row.Amount)
	}
	// Output:
	// key/a 3 3000
	// key/b 1 1000
}

// Few keys are counted exactly, and a minute later they are gone.
func TestWindow(t *testing.T) {
	c, now := controlapi.NewTopCounter(), start()
	for i := range 60 {
		c.Add(now.Add(time.Duration(i)*time.Second), key("a"), 10)
		if i%2 == 0 {
			c.Add(now.Add(time.Duration(i)*time.Second), key("b"), 5)
		}
	}
	for _, test := range []struct {
		at   time.Duration
		want []controlapi.TopRow
	}{
		{59 * time.Second, []controlapi.TopRow{{key("a"), 60, 600}, {key("b"), 30, 150}}},
		{60 * time.Second, []controlapi.TopRow{{key("a"), 60, 600}, {key("b"), 30, 150}}},
		{75 * time.Second, []controlapi.TopRow{{key("a"), 45, 450}, {key("b"), 22, 112}}},
		{90 * time.Second, []controlapi.TopRow{{key("a"), 30, 300}, {key("b"), 15, 75}}},
		{119 * time.Second, []controlapi.TopRow{{key("a"), 1, 10}}},
		{120 * time.Second, []controlapi.TopRow{}},
	} {
		if diff := cmp.Diff(test.want, c.Top(now.Add(test.at), 10, controlapi.TopFilter{})); diff != "" {
			t.Errorf("after %v (-want +got)\n%s", test.at, diff)
		}
	}
	c.Add(now.Add(121*time.Second), key("c"), 1)
	c.Add(now, key("c"), 1) // the clock went back
	if got, want := c.Top(now.Add(121*time.Second), 10, controlapi.TopFilter{}), []controlapi.TopRow{{key("c"), 2, 2}}; !cmp.Equal(got, want) {
		t.Errorf("after a pause: got %v, want %v", got, want)
	}
}

func TestTopOfMatchingKeys(t *testing.T) {
	c, now := controlapi.NewTopCounter(), start()
	for i := range 5 {
		for range i + 1 {
			c.Add(now, controlapi.TopKey{Entity: strconv.Itoa(i), Resource: strconv.Itoa(i % 2), Limit: "rpm"}, 0)
		}
	}
	got := c.Top(now, 2, controlapi.TopFilter{Resource: "0", Limit: "rpm"})
	want := []controlapi.TopRow{{controlapi.TopKey{Entity: "4", Resource: "0", Limit: "rpm"}, 5, 0}, {controlapi.TopKey{Entity: "2", Resource: "0", Limit: "rpm"}, 3, 0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// With any events, no number is above the true one and the memory is bounded. No key with
// more than a hundredth of the events is lost.
func TestHeavyHittersAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, now := controlapi.NewTopCounter(), start()
		events, amounts := map[string]int64{}, map[string]int64{}
		total := int64(0)
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 200), 1, 20).Draw(t, "heavy") {
			name := fmt.Sprintf("heavy-%d", n)
			for range n {
				c.Add(now, key(name), int64(n))
				events[name]++
				amounts[name] += int64(n)
				total++
				stranger := fmt.Sprintf("stranger-%d", total)
				c.Add(now, key(stranger), 1)
				events[stranger]++
				amounts[stranger]++
			}
		}
		total *= 2
		rows := c.Top(now, math.MaxInt, controlapi.TopFilter{})
		if len(rows) > 1024 {
			t.Fatalf("%d rows", len(rows))
		}
		found := map[string]bool{}
		for _, r := range rows {
			found[r.Entity] = true
			if r.Events > events[r.Entity] || r.Amount > amounts[r.Entity] {
				t.Fatalf("%s: got %d events of %d, amount %d of %d", r.Entity, r.Events, events[r.Entity], r.Amount, amounts[r.Entity])
			}
		}
		for name, n := range events {
			if n > max(20, total/100) && !found[name] {
				t.Fatalf("%s with %d of %d events is lost", name, n, total)
			}
		}
	})
}

// A client that invents keys hides none that is denied all the time.
func TestStrangersDoNotHideHeavyKeys(t *testing.T) {
	c, now := controlapi.NewTopCounter(), start()
	for i := range 100_000 {
		c.Add(now, key(fmt.Sprint("stranger", i)), 1)
		if i%20 == 0 {
			c.Add(now, key("heavy"), 1)
		}
	}
	top := c.Top(now, 1, controlapi.TopFilter{})
	if len(top) != 1 || top[0].Entity != "heavy" || top[0].Events < 4500 || top[0].Events > 5000 {
		t.Errorf("got %v, want heavy with 4500 to 5000 events", top)
	}
}

// Long names are cut so that they stay different.
func TestLongNames(t *testing.T) {
	c, now := controlapi.NewTopCounter(), start()
	long := strings.Repeat("x", 1<<20)
	c.Add(now, key(long+"a"), 1)
	c.Add(now, key(long+"b"), 1)
	rows := c.Top(now, 10, controlapi.TopFilter{})
	if len(rows) != 2 || len(rows[0].Entity) > 257 || rows[0].Entity == rows[1].Entity {
		t.Errorf("got %d rows", len(rows))
	}
}

// An amount that does not fit is cut to the greatest number.
func TestAmountsDoNotOverflow(t *testing.T) {
	c, now := controlapi.NewTopCounter(), start()
	for range 3 {
		c.Add(now, key("a"), math.MaxInt64)
		c.Add(now, key("b"), -5)
	}
	c.Add(now.Add(controlapi.TopWindow), key("a"), math.MaxInt64)
	got := c.Top(now.Add(controlapi.TopWindow), 10, controlapi.TopFilter{})
	want := []controlapi.TopRow{{key("a"), 4, math.MaxInt64}, {key("b"), 3, 0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestConcurrentUse(t *testing.T) {
	c, now := controlapi.NewTopCounter(), start()
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				c.Add(now.Add(time.Duration(i)*time.Millisecond), key(fmt.Sprint(w, i%3)), 1)
				if i%100 == 0 {
					c.Top(now, 10, controlapi.TopFilter{})
				}
			}
		})
	}
	wg.Wait()
	sum := int64(0)
	for _, r := range c.Top(now.Add(2*time.Second), 100, controlapi.TopFilter{}) {
		sum += r.Events
	}
	if sum != 16_000 {
		t.Errorf("got %d events, want 16000", sum)
	}
}

func BenchmarkTop(b *testing.B) {
	c, now := controlapi.NewTopCounter(), start()
	for i := range 100_000 {
		c.Add(now.Add(time.Duration(i)*time.Millisecond), key(strconv.Itoa(i%5000)), 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Top(now.Add(100*time.Second), 20, controlapi.TopFilter{})
	}
}

func BenchmarkAdd(b *testing.B) {
	for name, n := range map[string]int{"1 key": 1, "1000 keys": 1000, "1000000 keys": 1_000_000} {
		b.Run(name, func(b *testing.B) {
			keys := make([]controlapi.TopKey, n)
			for i := range keys {
				keys[i] = key(fmt.Sprint("some-entity-", i))
			}
			c, now := controlapi.NewTopCounter(), start()
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					c.Add(now, keys[i*7919%len(keys)], 1)
				}
			})
		})
	}
}
