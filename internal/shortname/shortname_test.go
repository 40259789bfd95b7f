package shortname_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/shortname"
)

func Example() {
	fmt.Println(shortname.Of("key/k-123"))
	fmt.Println(len(shortname.Of(strings.Repeat("k", 1<<20))))
	// Output:
	// key/k-123
	// 257
}

func TestOf(t *testing.T) {
	long := strings.Repeat("x", shortname.Max+1)
	if got := shortname.Of(long); len(got) != shortname.Max+1 || got == long {
		t.Errorf("got %d bytes", len(got))
	}
	if got := shortname.Of(long[:shortname.Max]); got != long[:shortname.Max] {
		t.Errorf("a name of %d bytes was changed", shortname.Max)
	}
	if shortname.Of(long+"a") == shortname.Of(long+"b") {
		t.Error("two names are one")
	}
	if stored := shortname.Of(long); shortname.Of(stored) == stored {
		t.Error("a name is taken for the short form of another")
	}
}
