package items

import (
	"errors"
	"testing"

	"github.com/redis/rueidis"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A reply without the item has the id of its write. Another one leaves the outcome unknown.
func TestReplyToAnotherWrite(t *testing.T) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{valkeytest.Start(t).Address}, DisableCache: true, DisableRetry: true, ForceSingleClient: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	of := schema.NewUpdate(schema.Key{})
	of.Set("lw1", &types.AttributeValueMemberB{Value: []byte("mine")})
	of.Set("lt", schema.NumberAttribute(1))
	mine := &batch{writes: []write{{ItemWrite: of}}}
	for script, want := range map[string]error{
		"return {1, '1', '2', 'Bmine'}":  nil,
		"return {1, '1', '2', 'Bother'}": limiter.ErrUncertain,
		"return {0, '1', '2', 'Bmine'}":  limiter.ErrUncertain,
		"return {2, '1', '2', 'Bmine'}":  limiter.ErrUncertain,
		"return {1, '1', '2', {}}":       limiter.ErrUncertain,
	} {
		reply, err := client.Do(t.Context(), client.B().Eval().Script(script).Numkeys(0).Build()).ToArray()
		if err != nil {
			t.Fatal(err)
		}
		r, err := parse(reply, mine)
		if !errors.Is(err, want) || err == nil && (!r.applied || r.images[0] != nil) {
			t.Errorf("%s: %+v, %v, want %v", script, r, err, want)
		}
	}
}
