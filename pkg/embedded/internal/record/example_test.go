package record_test

import (
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/embedded/internal/record"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func Example() {
	limits, err := limiter.NewLimits(limiter.PerMinute("rpm", 60))
	if err != nil {
		fmt.Println(err)
		return
	}
	id := record.ID{Namespace: "default", Ref: limiter.ResourceLimitsRef("gpt-4")}
	key, head := record.KeyOf(id.Identity())
	value := record.AppendRecord(head, id.Ref, limiter.Record{Limits: limits})

	found, stored, err := record.ParseRecord(key, value)
	fmt.Println(found.Ref.Resource, stored.Limits.At(0).Name, stored.Limits.At(0), err)
	_, _, err = record.ParseRecord(key, value[:len(value)-1])
	fmt.Println(err)
	// Output:
	// gpt-4 rpm 60/minute <nil>
	// record of entity "", resource "gpt-4": not a record of this version
}
