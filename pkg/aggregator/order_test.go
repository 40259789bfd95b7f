package aggregator

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// While snapshots are not written, the position stays in front of their records: a process that stops then leaves
// them to another one, which counts each once.
func TestThePositionIsBehindTheCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.fails(func(*Change) (bool, error) { return false, errors.New("the table stalls") })
		r.add("s", "", r.fleet, "k", 6)
		_, stop := r.start("a", nil)
		time.Sleep(time.Minute)
		if l := r.leases.get("s"); l.Position != "" {
			t.Errorf("the position is %q, and nothing is counted", l.Position)
		}
		stop()
		r.fails(nil)
		_, stop = r.start("b", nil)
		time.Sleep(2 * time.Minute)
		r.counted("by the other process", 6)
		stop()
	})
}
