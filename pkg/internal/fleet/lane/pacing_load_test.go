package lane

import (
	"testing"
	"time"
)

func TestLoad(t *testing.T) {
	var o Load
	o.Observe(paceT0, 1, 0, 1000)
	o.Observe(paceT0.Add(500*time.Millisecond), 1, 450, 1000) // within the window
	if o.Busy {
		t.Error("busy before the end of the window")
	}
	o.Observe(paceT0.Add(time.Second), 1, 800, 1000)
	if !o.Busy {
		t.Error("80 % of the units are not busy")
	}
	o.Observe(paceT0.Add(2*time.Second), 1, 1000, 1000)
	if o.Busy || !o.Quiet.Equal(paceT0.Add(time.Second)) {
		t.Errorf("20 %% of the units: busy %t, quiet since %v", o.Busy, o.Quiet)
	}
	o.Observe(paceT0.Add(3*time.Second), 2, 0, 1000) // another item
	if !o.Quiet.Equal(paceT0.Add(3 * time.Second)) {
		t.Errorf("quiet since %v, want since the item is known", o.Quiet)
	}
}

// An item of a server without splits is never busy, however long it was not seen.
func TestLoadWithoutSplits(t *testing.T) {
	const most = 1 << 50
	var o Load
	o.Observe(paceT0, 1, 0, most)
	for gap := loadWindow; gap <= 24*time.Hour; gap *= 2 {
		if o.Observe(o.since.Add(gap), 1, o.units+1, most); o.Busy {
			t.Errorf("busy after one write in %v", gap)
		}
	}
}
