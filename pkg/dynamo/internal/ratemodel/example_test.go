package ratemodel_test

import (
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/ratemodel"
)

// The whole form has no violation; without the bound of a take it has.
func Example() {
	fmt.Printf("%q\n", ratemodel.Run(0, ratemodel.Whole, false).Violation)
	fmt.Println(ratemodel.Run(0, ratemodel.TakeBound, false).Violation != "")
	// Output:
	// ""
	// true
}
