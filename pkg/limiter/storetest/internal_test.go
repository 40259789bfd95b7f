package storetest

import "testing"

// TestARefundLandsUntilItsEnd: the check of unsteady clocks counts a refund until its call is over. The
// bucket has 5,000 millitokens and refills 1,000 a second.
func TestARefundLandsUntilItsEnd(t *testing.T) {
	r := rate{burst: 5000, amount: 1000, period: 1000}
	for _, tt := range []struct {
		name   string
		refund taking
		legal  bool
	}{
		{"its call ended after the takes", taking{from: 1000, to: 1000, refunded: 17, began: 1, ended: 8}, true},
		{"its call ended before them", taking{from: 1000, to: 1000, refunded: 17, began: 1, ended: 2}, false},
		{"a greater one was needed", taking{from: 1000, to: 1000, refunded: 10, began: 1, ended: 8}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := history{decided: []taking{
				tt.refund,
				{from: 2000, to: 2000, taken: 1, began: 3, ended: 4},
				{from: 7000, to: 7000, taken: 5000, began: 5, ended: 6},
				{from: 7100, to: 7100, taken: 111, began: 7, ended: 9},
				{from: 7900, to: 7900, taken: 1, began: 10, ended: 11},
			}}
			err := r.check(h.landed(), 0)
			if (err == nil) != tt.legal {
				t.Errorf("the history is legal: %t, want %t: %v", err == nil, tt.legal, err)
			}
		})
	}
}
