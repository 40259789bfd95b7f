package benchtable_test

import (
	"fmt"
	"os"

	"github.com/ratelimit/ratelimit/test/kit/benchtable"
)

func Example() {
	var t benchtable.Table
	t.Add(benchtable.Row{Name: "decision, 1,000 keys", Measured: "2.1× a lookup", Target: "at most 3×", OK: true})
	t.Add(benchtable.Row{Name: "matching, 10,000 rules", Measured: "1.62× 10 rules", Target: "at most 1.5×", OK: false})
	if err := t.Write(os.Stdout); err != nil {
		fmt.Println(err)
	}
	fmt.Println("failed:", t.Failed())
	// Output:
	// what                    measured        target        verdict
	// decision, 1,000 keys    2.1× a lookup   at most 3×    ok
	// matching, 10,000 rules  1.62× 10 rules  at most 1.5×  MISSED
	// failed: true
}
