//go:build long

package embedded

import (
	"runtime"
	"testing"
)

// TestMissingRulesAreFound removes one rule at a time. A crash test that passes without a rule does
// not test it.
func TestMissingRulesAreFound(t *testing.T) {
	with := func(change func(*ways)) ways {
		w := asTheyAre()
		change(&w)
		return w
	}
	for _, tt := range []struct {
		name string
		ways ways
	}{
		{"recovery refills, and then subtracts", with(func(w *ways) { w.recover = refillLast })},
		{"recovery subtracts the block", with(func(w *ways) { w.recover = forgetBlocks })},
		{"tokens that recovery subtracted are not given", with(func(w *ways) { w.recover = reopenBlocks })},
		{"a bucket that the file does not have gives nothing", covering(func(k *block) bool { return !k.stored }, both)},
		{"during a commit the state before covers each take", covering(func(k *block) bool { return k.inFlight }, theStateInTheFile)},
		{"during a commit the new state covers each take", covering(func(k *block) bool { return k.inFlight }, theNextState)},
		{"while its record is deleted a bucket gives nothing", covering(func(k *block) bool { return k.deleting != commitOpen }, both)},
		{"a state covers nothing under other limits", with(func(w *ways) { w.take = keepCover })},
		{"a refund beyond the block is answered when the file has it", with(func(w *ways) { w.take = answerAtOnce })},
		{"a bucket in use again is not dropped", with(func(w *ways) { w.sweep = dropAnyway })},
		{"a commit of unknown outcome may not be made", with(func(w *ways) { w.ended = takeItAsMade })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range uint64(100) {
				if found := failure(t, seed, tt.ways); found != "" {
					t.Logf("seed %d: %s", seed, found)
					return
				}
			}
			t.Error("nothing was found")
		})
	}
}

// failure returns the first failure of a run.
func failure(t *testing.T, seed uint64, as ways) (found string) {
	t.Helper()
	ended := make(chan struct{})
	w := newWorld(t, seed, as)
	go func() {
		defer close(ended)
		w.fail = func(text string) {
			found = text
			runtime.Goexit()
		}
		w.run()
	}()
	<-ended
	w.kill(w.store)
	return found
}
