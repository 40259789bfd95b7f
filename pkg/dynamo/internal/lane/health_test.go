package lane

import (
	"testing"
	"time"
)

// A message that failed alone, long ago, says nothing of the next ones.
func TestAnOldFailureIsNoSilence(t *testing.T) {
	var h health
	at := func(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }
	h.sent(at(0))
	h.ended(at(1), false)
	if h.silent(at(60_000)) {
		t.Error("it is silent while no message is under way")
	}
	h.sent(at(60_001))
	if _, begins := h.begins(at(60_002)); begins || h.silent(at(61_000)) {
		t.Error("the silence of a minute ago goes on")
	}
	h.ended(at(61_000), false)
	h.sent(at(61_400)) // again, after the longest pause
	if since, begins := h.begins(at(61_401)); !begins || !since.Equal(at(60_001)) {
		t.Errorf("a silence since %v begins is %t, want since the first message", since, begins)
	}
}
