package main

import (
	"math/big"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// bookkeeper reserves and settles by the rules of examples/llm, in an embedded store
// at one instant. Its limits hold the largest possible amounts.
type bookkeeper struct {
	rules   *descriptor.Rules
	limiter *limiter.Limiter
	now     time.Time
	settled int
}

// most is the capacity of each bucket of a bookkeeper, in tokens.
const most = limiter.MaxTokens

func newBookkeeper(t *testing.T) *bookkeeper {
	t.Helper()
	cfg, err := config.Load(llmExample, config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := limiter.NewLimits(limiter.Custom("rpm", most, most, time.Hour), limiter.Custom("tpm", most, most, time.Hour), limiter.Custom("usd", most, most, time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	static := cfg.Static
	static.System, static.Resources = all, nil
	for id, entity := range static.Entities {
		entity.Limits = nil
		static.Entities[id] = entity
	}
	store := embedded.New(embedded.Config{SweepInterval: 24 * time.Hour}) // not by the clock of the machine
	t.Cleanup(func() { _ = store.Close(t.Context()) })
	l, err := limiter.New(limiter.Config{Store: store})
	if err == nil {
		err = l.SetStatic(t.Context(), static)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &bookkeeper{rules: cfg.Rules, limiter: l, now: time.UnixMilli(1_000_000)}
}

// about makes a descriptor with a number of hits, from keys and values in turn.
func about(hits uint64, pairs ...string) descriptor.Descriptor {
	d := descriptor.Descriptor{Hits: hits, HitsSet: true}
	for i := 0; i < len(pairs); i += 2 {
		d.Entries = append(d.Entries, descriptor.Entry{Key: pairs[i], Value: pairs[i+1]})
	}
	return d
}

// reserve reserves an estimate of each kind for a key.
func (b *bookkeeper) reserve(t *testing.T, key, model string, estimate uint64) (holdings []limiter.Holding) {
	t.Helper()
	var plan descriptor.Plan
	b.rules.Plan(&descriptor.Call{Domain: "llm-gateway", Descriptors: []descriptor.Descriptor{
		about(estimate, "api_key", key, "model", model, "meter", "reserve", "kind", "input"),
		about(estimate, "api_key", key, "model", model, "meter", "reserve", "kind", "output"),
	}}, &plan)
	var d limiter.Decision
	if err := b.limiter.Decide(t.Context(), b.now, &plan.Request, &d); err != nil || !d.Admitted {
		t.Fatalf("reserving %d for %s: admitted is %v, %v", estimate, model, d.Admitted, err)
	}
	for _, r := range plan.Reserves {
		holdings = d.Holdings(holdings, &plan.Request, r.Take)
	}
	return holdings
}

// spend reserves an estimate for a key, and settles it to the usage of each kind.
func (b *bookkeeper) spend(t *testing.T, key, model string, estimate uint64, used map[string]uint64) {
	t.Helper()
	holdings := b.reserve(t, key, model, estimate)
	var plan descriptor.Plan
	call := descriptor.Call{Domain: "llm-gateway"}
	for kind, n := range used {
		call.Descriptors = append(call.Descriptors, about(n, "op", "settle", "reservation_id", "id", "model", model, "kind", kind))
	}
	b.rules.Plan(&call, &plan)
	if len(plan.Settlements) != len(used) {
		t.Fatalf("%s: got %d settlements, want %d", model, len(plan.Settlements), len(used))
	}
	var all []limiter.Consumption
	for _, s := range plan.Settlements {
		all = append(all, s.Used...)
	}
	b.settled++
	mark := limiter.Mark{ID: strconv.Itoa(b.settled), Owner: "o", Expires: b.now.Add(time.Hour)}
	if won, err := b.limiter.Settle(t.Context(), b.now, mark, holdings, all); err != nil || !won {
		t.Fatalf("settling for %s: won is %v, %v", model, won, err)
	}
}

// spent returns the usage of a limit by the key k-1 and by its organisation, in
// millitokens.
func (b *bookkeeper) spent(t *testing.T, resource, limit string) []int64 {
	t.Helper()
	var d limiter.Decision
	look := &limiter.Request{Takes: []limiter.Take{{Entity: "key/k-1", Resource: resource, Consume: []limiter.Consumption{{Limit: limit}}}}}
	if err := b.limiter.Decide(t.Context(), b.now, look, &d); err != nil {
		t.Fatal(err)
	}
	all := make([]int64, 0, len(d.Statuses))
	for i := range d.Statuses {
		all = append(all, most*limiter.Milli-d.Statuses[i].Available)
	}
	return all
}

// llmPrices returns the table of prices of the page, by model and kind.
func llmPrices(t *testing.T) map[string]map[string]*big.Rat {
	t.Helper()
	prices := map[string]map[string]*big.Rat{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+)-\\*` \\| ([0-9.]+) \\| ([0-9.]+) \\| ([0-9.]+) \\|$").FindAllStringSubmatch(llmPage(t), -1) {
		prices[m[1]] = map[string]*big.Rat{}
		for i, kind := range []string{"input", "cached", "output"} {
			prices[m[1]][kind], _ = new(big.Rat).SetString(m[2+i])
		}
	}
	if len(prices) < 3 {
		t.Fatalf("prices on the page: got %v, want three", prices)
	}
	return prices
}

// For any usage of any kind, a budget loses exactly the prices of the page times the
// tokens, to the thousandth of a micro-dollar. That holds for the key's budget and its
// organisation's.
func TestMoneyIsExact(t *testing.T) {
	t.Parallel()
	counts := []uint64{0, 1, 3, 7, 999, 1_000, 123_457, 999_999_999, 1_000_000_000}
	b := newBookkeeper(t)
	sum := new(big.Rat)
	for model, price := range llmPrices(t) {
		for i, n := range counts {
			used := map[string]uint64{"input": n, "cached": counts[(i+4)%len(counts)], "output": counts[(i+7)%len(counts)]}
			estimate := max(1, counts[(i+2)%len(counts)]) // 0 is a peek
			b.spend(t, "k-1", model+"-1", estimate, used)
			for kind, n := range used {
				sum.Add(sum, new(big.Rat).Mul(price[kind], new(big.Rat).SetInt(new(big.Int).SetUint64(n*limiter.Milli))))
			}
			want := sum.Num().Int64()
			if !sum.IsInt() || !sum.Num().IsInt64() {
				t.Fatalf("%s: %v is no whole number of thousandths", model, sum)
			}
			if diff := cmp.Diff([]int64{want, want}, b.spent(t, "budget", "usd")); diff != "" {
				t.Fatalf("%s, estimate %d, used %v: thousandths of a micro-dollar spent, by the key and by org/acme (-want +got):\n%s", model, estimate, used, diff)
			}
		}
	}
}

// The reserved amount of a budget is the estimate at the price of its kind.
func TestMoneyIsReserved(t *testing.T) {
	t.Parallel()
	for model, price := range llmPrices(t) {
		b := newBookkeeper(t)
		b.reserve(t, "k-1", model+"-1", 1_000)
		both := new(big.Rat).Add(price["input"], price["output"])
		want := both.Mul(both, big.NewRat(1_000*limiter.Milli, 1)).Num().Int64()
		if diff := cmp.Diff([]int64{want, want}, b.spent(t, "budget", "usd")); diff != "" {
			t.Errorf("%s: thousandths of a micro-dollar reserved, by the key and by org/acme (-want +got):\n%s", model, diff)
		}
	}
}

// The tokens of a model are counted as they are, at any price.
func TestMoneyLeavesTokensAlone(t *testing.T) {
	t.Parallel()
	b := newBookkeeper(t)
	b.spend(t, "k-1", "nano-1", 500, map[string]uint64{"input": 600, "cached": 400, "output": 88})
	b.spend(t, "k-2", "nano-1", 500, map[string]uint64{"input": 1, "cached": 1, "output": 1})
	if diff := cmp.Diff([]int64{1_088_000, 1_091_000}, b.spent(t, "nano-1", "tpm")); diff != "" {
		t.Errorf("thousandths of a token, of the key and of org/acme (-want +got):\n%s", diff)
	}
	for _, resource := range []string{"budget", "nano-1"} { // over all models, and by model
		if diff := cmp.Diff([]int64{600*100 + 400*25 + 88*400, 600*100 + 400*25 + 88*400 + 525}, b.spent(t, resource, "usd")); diff != "" {
			t.Errorf("thousandths of a micro-dollar for %s, of the key and of org/acme (-want +got):\n%s", resource, diff)
		}
	}
}
