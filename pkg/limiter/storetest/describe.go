package storetest

import (
	"fmt"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// cut returns the beginning of a long name, for messages.
func cut(name string) string {
	const most = 40
	if len(name) <= most {
		return name
	}
	return fmt.Sprintf("%s… (%d bytes)", name[:most], len(name))
}

// describe returns ops and their outcome, for messages.
func describe(ops []limiter.Op) string {
	var b strings.Builder
	for i, op := range ops {
		fmt.Fprintf(&b, "\n  op %d on %q %q variant %d, generation %d:", i, cut(op.Bucket.Entity), cut(op.Bucket.Resource), op.Bucket.Variant, op.Generation)
		for _, sp := range op.Spends {
			fmt.Fprintf(&b, "\n    %s take %d peek %t charge %d refund %d → held %t exceeded %t %+v",
				sp.Limit, sp.Take, sp.Look, sp.Charge, sp.Refund, sp.Held, sp.Exceeded, sp.Bucket)
		}
	}
	return b.String()
}
