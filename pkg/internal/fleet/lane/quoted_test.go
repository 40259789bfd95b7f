package lane

import (
	"fmt"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/test/kit/quoted"
)

// The pages of docs quote constants of lanes.
func TestThePagesQuoteWhatIsTrue(t *testing.T) {
	ms := func(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
	lift := fmt.Sprintf("max(%s, %d round trips)", ms(leastLift), liftTrips)
	late := fmt.Sprintf("max(B/%d, T/2n)", lateShare)
	pace := fmt.Sprintf("%s, half a round trip, or %.2f ms for each replica of the item", ms(Least), Each.Seconds()*1000)
	for page, quotes := range map[string][]string{
		"guarantees.md": {
			fmt.Sprintf("a state of the item that is at most %s old", ms(Freshness)),
			fmt.Sprintf("At one time at most %s tokens of a limit are admitted late", late),
			fmt.Sprintf("that the replica has not seen yet it is B/%d.", lateShare),
			fmt.Sprintf("no message has had a reply for %d s", silence/time.Second),
			fmt.Sprintf("beyond %d,%d requests owed", maxOwed/1000, maxOwed%1000),
		},
		"valkey.md": {
			fmt.Sprintf("%d to %d,%03d messages, fewer once a round trip takes more than %s", leastBound, mostBound/1000, mostBound%1000, ms(longTrip)),
			fmt.Sprintf("More than %d,%d takes that wait in one replica", maxOwed/1000, maxOwed%1000),
		},
		"configuration.md": {
			fmt.Sprintf("denials go by a state at most %.1f s old", (Freshness + time.Second).Seconds()), // repeated by package limiter
		},
		"design/fleet.md": {
			fmt.Sprintf("The state of the item is at most %s old", ms(Freshness)),
			fmt.Sprintf("min(%s, 1/%d of the time to refill whole)", lift, liftPart),
			fmt.Sprintf("holds less than %d ms of refill for each of them, a replica denies beyond its part", DrySpan),
			fmt.Sprintf("for %d s after its last write", PeerMemory/time.Second),
			"the next one follows after " + pace,
			fmt.Sprintf("%d bits of each write's id are drawn", saltBits),
			fmt.Sprintf("one in 1,%03d of those with the same number", 1<<saltBits-1000),
		},
		"design/leases.md": {
			fmt.Sprintf("A replica has %d takes of an item under way at most", schema.ChannelCount),
			fmt.Sprintf("as soon as %d requests have come since, after %s or two round trips at least and %s at most", lookRequests, ms(lookLeast), ms(lookMost)),
			fmt.Sprintf("Where a round trip takes %s or more", ms(lookLeast/mostYield)),
			fmt.Sprintf("write nothing for up to %d round trips", mostYield),
		},
	} {
		quoted.Require(t, "../../../../docs/"+page, quotes...)
	}
	if lookLeast != 60*time.Millisecond || lookMost != 500*time.Millisecond {
		t.Error("the doc of package engine says: 60 ms, and half a second")
	}
	if lateTrips != 3 || owedPatience != time.Minute || makeView != time.Hour || maxUnderWay != schema.ChannelCount || mostLooks != 6 {
		t.Error("the pages say: one and a half round trips, a minute, an hour, as many writes as channels, and six reads")
	}
}
