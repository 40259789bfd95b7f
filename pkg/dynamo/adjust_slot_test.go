package dynamo_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// An adjustment asks for leases by a slot in the item. None is left when it ends: it would keep leases and
// changes of limits away for seconds.
func TestAnAdjustmentLeavesNoSlot(t *testing.T) {
	for name, do := range map[string]func(f *adjusted){
		"a reset": func(f *adjusted) { f.adjust(limiter.Adjustment{}) },
		"a top-up that has room before all leases are back": func(f *adjusted) {
			f.adjust(limiter.Adjustment{Kind: limiter.AdjustTopUp, Tokens: tokens(990)})
		},
		"a reset that a dead replica does not answer": func(f *adjusted) {
			f.links[2].cut.Store(true)
			f.adjust(limiter.Adjustment{})
		},
		"two resets at once": func(f *adjusted) {
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() { f.adjust(limiter.Adjustment{}) })
			}
			both.Wait()
		},
	} {
		for round := range 3 {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newAdjusted(t, adjustedLimit(), true)
					defer f.end()
					time.Sleep(3*time.Second + time.Duration(round)*137*time.Millisecond)
					do(f)
					if n := f.slots(); n > 0 {
						t.Errorf("%d slots are left", n)
					}
				})
			})
		}
	}
}

// slots returns how many slots of the bucket ask for leases.
func (f *adjusted) slots() (n int) {
	f.Helper()
	in := f.links[0].last.Load()
	out, err := f.db.GetItem(f.Context(), &dynamodb.GetItemInput{TableName: in.TableName, Key: in.Key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		f.Fatal(err)
	}
	k, err := schema.ItemKey(*in.TableName, out.Item)
	if err != nil {
		f.Fatal(err)
	}
	b, err := schema.ParseBucket(*in.TableName, k, out.Item, nil)
	if err != nil {
		f.Fatal(err)
	}
	for i := range b.Leases {
		if b.Leases[i].Demand == lease.Wish {
			n++
		}
	}
	return n
}
