package plan_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// extras gives some limits that carry no use tokens above their capacity.
func extras(t *rapid.T, b *schema.Bucket) {
	for i := range b.Balances {
		if limit := &b.Balances[i]; limit.Carried <= 0 && rapid.Bool().Draw(t, "an extra") {
			limit.Carried = -rapid.Int64Range(0, 5000).Draw(t, "extra")
		}
	}
}

// another returns a state of the same bucket with other use.
func another(t *rapid.T, of *schema.Bucket) *schema.Bucket {
	b := *of
	b.Balances = append([]schema.Balance(nil), of.Balances...)
	for i := range b.Balances {
		limit := &b.Balances[i]
		room := limit.Share.Capacity * limit.Share.Period * schema.Parts
		limit.FullAt = limit.FullAt.Add(schema.UnitsOf(rapid.Int64Range(-room, room).Draw(t, "other use")))
	}
	b.Serial += rapid.Int64Range(0, 9).Draw(t, "writes")
	b.Shard.Epoch += rapid.Int64Range(0, 3).Draw(t, "exact writes")
	return &b
}

// balances returns those of a bucket of one shard, by limit.
func balances(b *schema.Bucket, now int64) map[string]int64 {
	all := make(map[string]int64)
	for _, s := range plan.Balances([]*schema.Bucket{b}, now) {
		all[s.Limit.Name] = s.Tokens
	}
	return all
}

// TestHealTakesWhatIsMissing: of each limit the lesser balance is left. A second process that remembers
// the same changes nothing more, and its plan of before is refused. Takes of between count.
func TestHealTakesWhatIsMissing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		found := drawn(t, epoch)
		extras(t, found)
		remembered := another(t, found)
		extras(t, remembered)
		w.put([]*schema.Bucket{found})
		now := epoch + rapid.Int64Range(0, 3000).Draw(t, "wait")
		had, was := balances(found, now), balances(remembered, now)
		change, err := plan.Heal(found, remembered, now)
		if err != nil {
			t.Fatal(err)
		}
		if change == nil {
			for name := range had {
				if had[name] > was[name] {
					t.Fatalf("%s has %d, and %d is remembered; nothing is healed", name, had[name], was[name])
				}
			}
			return
		}
		taken := int64(0)
		if take := w.takes(found); take != nil && rapid.Bool().Draw(t, "take") {
			if applied, _ := w.send(take, 0); applied {
				taken = 1
			}
		}
		if !w.transact([]*plan.Adjusted{change}) {
			if taken == 0 {
				t.Fatal("the heal was refused")
			}
			return
		}
		if w.transact([]*plan.Adjusted{change}) {
			t.Fatal("two processes healed one bucket")
		}
		healed := w.read(0)
		for name, got := range balances(healed, now) {
			want := min(had[name], max(was[name], min(had[name], healed.Any(name).Floor)))
			if name == "a" {
				want -= taken
			}
			if got < want-1 || got > want+1 {
				t.Fatalf("%s is %d after the heal; found %d, remembered %d, taken between %d", name, got, had[name], was[name], taken)
			}
		}
	})
}

// TestRestoredIsNewer: a state that is put in the place of a lost one is newer than all that were
// remembered, and has the same balances.
func TestRestoredIsNewer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		remembered := drawn(t, epoch)
		restored := plan.Restore(remembered)
		w.put([]*schema.Bucket{restored})
		got := w.read(0)
		if !got.Newer(remembered) {
			t.Fatal("the restored state is not newer")
		}
		for name, want := range balances(remembered, epoch) {
			if is := balances(got, epoch)[name]; is != want {
				t.Fatalf("%s is %d, want %d", name, is, want)
			}
		}
	})
}
