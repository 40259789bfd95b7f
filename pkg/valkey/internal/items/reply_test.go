package items

import (
	"errors"
	"testing"

	"github.com/redis/rueidis"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// A reply without the item has the id of its write. That to another one leaves the outcome unknown.
func TestReplyToAnotherWrite(t *testing.T) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{valkeytest.Start(t).Address}, DisableCache: true, DisableRetry: true, ForceSingleClient: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	mine := []write{{actions: actions{set: []string{"lw1", "Bmine", "lt", "1"}}}}
	for id, want := range map[string]error{"Bmine": nil, "Bother": limiter.ErrUncertain} {
		reply, err := client.Do(t.Context(), client.B().Eval().Script("return {1, '1', '2', ARGV[1]}").Numkeys(0).Arg(id).Build()).ToArray()
		if err != nil {
			t.Fatal(err)
		}
		r, err := parse(reply, mine)
		if !errors.Is(err, want) || err == nil && (!r.applied || r.images[0] != nil) {
			t.Errorf("a reply with the id %q: %+v, %v, want %v", id, r, err, want)
		}
	}
}
