package lane

import (
	"testing"
	"time"
)

// A message that failed alone, long ago, says nothing of the next ones.
func TestAnOldFailureIsNoSilence(t *testing.T) {
	var h health
	at := func(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }
	h.sent(at(0), 10*time.Second)
	h.ended(at(1), false)
	if h.silent(at(60_000)) {
		t.Error("it is silent while no message is under way")
	}
	h.sent(at(60_001), 10*time.Second)
	if _, begins := h.begins(at(60_002)); begins || h.silent(at(61_000)) {
		t.Error("the silence of a minute ago goes on")
	}
	h.ended(at(61_000), false)
	h.sent(at(61_400), 10*time.Second) // again, after the longest pause
	if since, begins := h.begins(at(61_401)); !begins || !since.Equal(at(60_001)) {
		t.Errorf("a silence since %v begins is %t, want since the first message", since, begins)
	}
}

// A silence does not count the time for which the machine stood still: at its end the replies may
// wait to be read. Then it begins anew, if none is there.
func TestAStandstillIsNoSilence(t *testing.T) {
	at := func(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }
	var h health
	h.sent(at(0), 100*time.Millisecond)
	h.sent(at(50), 100*time.Millisecond)
	if h.silent(at(3050)) {
		t.Error("it is silent after 3 s in which nothing ran")
	}
	h.ended(at(3051), false)
	h.ended(at(3052), false)
	for ms := 3053; ms < 3900; ms += 100 {
		h.sent(at(ms), 100*time.Millisecond)
		if h.silent(at(ms)) {
			t.Fatalf("it is silent %d ms after the standstill", ms-3050)
		}
		h.ended(at(ms+100), false)
	}
	h.sent(at(4040), 100*time.Millisecond)
	if !h.silent(at(4050)) {
		t.Error("it is not silent a second after the standstill")
	}
}
