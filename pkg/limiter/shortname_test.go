package limiter_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func Example() {
	fmt.Println(limiter.ShortName("key/k-123"))
	fmt.Println(len(limiter.ShortName(strings.Repeat("k", 1<<20))))
	// Output:
	// key/k-123
	// 257
}

func TestOf(t *testing.T) {
	long := strings.Repeat("x", limiter.MaxShownName+1)
	if got := limiter.ShortName(long); len(got) != limiter.MaxShownName+1 || got == long {
		t.Errorf("got %d bytes", len(got))
	}
	if got := limiter.ShortName(long[:limiter.MaxShownName]); got != long[:limiter.MaxShownName] {
		t.Errorf("a name of %d bytes was changed", limiter.MaxShownName)
	}
	if limiter.ShortName(long+"a") == limiter.ShortName(long+"b") {
		t.Error("two names are one")
	}
	if short := limiter.ShortName(long); !limiter.Shortened(short) || limiter.Shortened(long) || limiter.Shortened(long+short) {
		t.Errorf("%q is not told from longer names", short)
	}
	if stored := limiter.ShortName(long); limiter.ShortName(stored) == stored {
		t.Error("a name is taken for the short form of another")
	}
}
