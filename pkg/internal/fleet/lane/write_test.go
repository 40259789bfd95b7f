package lane

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// send plans a write of one request for a token, and counts it as under way.
func send(t *testing.T, l *Lane) *batch {
	t.Helper()
	now := time.UnixMilli(testTime)
	l.queue = []*Request{ofTokens(l.view.state.Limits, 1)}
	g := l.planner.newGroup(now)
	g.fill(l.queue)
	l.queue = g.left
	f := l.writer.write(g.stage, g.actors, now).carries()
	if f == nil || f.write.Exact() {
		t.Fatal("the request is not a commuting write")
	}
	return f
}

// Each take under way leaves its id in a channel of its own. The end of a take frees its channel.
func TestTakesUnderWayHaveTheirOwnChannels(t *testing.T) {
	l := bench(t, 500, 1000)
	l.host.self.by, l.host.self.first = awsdb.Goroutines{}, 1
	first := send(t, l)
	for channel := 1; channel < schema.ChannelCount; channel++ {
		if f := send(t, l); f.id.Channel != channel {
			t.Errorf("take %d is in channel %d, want %d", channel, f.id.Channel, channel)
		}
	}
	if first.id.Channel != 0 {
		t.Errorf("the first take is in channel %d, want 0", first.id.Channel)
	}
	l.sender.arrived(l.out[1])
	if f := send(t, l); f.id.Channel != 1 {
		t.Errorf("the next take is in channel %d, want 1, which is free", f.id.Channel)
	}
}
