package limiter_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// withoutTime is a log without the time of lines.
func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// A kind with many lines hides no line of another, and each line counts those of its own kind.
func TestKindsHideNoOthers(t *testing.T) {
	var text strings.Builder
	l := limiter.NewSampledLog(slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: withoutTime})))
	begin := time.Unix(1000, 0)
	for i := range 250 {
		now := begin.Add(time.Duration(i) * 10 * time.Millisecond)
		l.Write(t.Context(), now, slog.LevelWarn, "many", "one of many")
		if i == 50 || i == 60 {
			l.Write(t.Context(), now, slog.LevelError, "few", "one of few", slog.Int("i", i))
		}
		l.Write(t.Context(), now, slog.LevelDebug, "quiet", "not logged at this level")
	}
	want := []string{
		`level=WARN msg="one of many" suppressed=0`,
		`level=ERROR msg="one of few" i=50 suppressed=0`,
		`level=WARN msg="one of many" suppressed=99`,
		`level=WARN msg="one of many" suppressed=99`,
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(text.String()), "\n")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// One of several concurrent lines is written, and the others are all counted.
func TestLinesAtOnce(t *testing.T) {
	var text strings.Builder
	l := limiter.NewSampledLog(slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: withoutTime})))
	var work sync.WaitGroup
	for range 100 {
		work.Go(func() { l.Write(t.Context(), time.Unix(1000, 0), slog.LevelWarn, "k", "m") })
	}
	work.Wait()
	l.Write(t.Context(), time.Unix(1001, 0), slog.LevelWarn, "k", "m")
	if got, want := text.String(), "level=WARN msg=m suppressed=0\nlevel=WARN msg=m suppressed=99\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func ExampleLog() {
	l := limiter.NewSampledLog(slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime})))
	for i := range 3 {
		l.Write(context.Background(), time.Unix(1000, 0), slog.LevelWarn, "late", "a call is late", slog.Int("call", i))
	}
	l.Write(context.Background(), time.Unix(1001, 0), slog.LevelWarn, "late", "a call is late", slog.Int("call", 3))
	fmt.Println("four calls, two lines")
	// Output:
	// level=WARN msg="a call is late" call=0 suppressed=0
	// level=WARN msg="a call is late" call=3 suppressed=2
	// four calls, two lines
}
