package console_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// pictured is the time of the traffic in the picture.
const pictured = 4 * time.Minute

// The picture of the documentation is of three replicas on one server, after some minutes of traffic. A limit is
// changed, and a budget is told.
func TestPicture(t *testing.T) {
	if !*update {
		return // the pages of the picture are tested by the others
	}
	busy := strings.NewReplacer(
		"rpm: 5/hour", "rpm: 60/minute", "1_000_000}", "40_000}", "5000/hour", "1000/minute", "400/hour", "150/minute",
	).Replace(config)
	store := stores["valkey"](t)
	program := build(t)
	replicas := []*service{startWith(t, program, busy, store, nil)}
	for range 2 {
		replicas = append(replicas, startWith(t, program, busy, store, replicas[0]))
	}
	b := openTab(startBrowser(t), t)
	b.login(t, replicas[0], "ada")
	began := time.Now()
	for i := 0; time.Since(began) < pictured; i++ {
		minute := time.Since(began) / time.Minute
		for range 4 + 4*int(minute%3) {
			key := []string{"s-1", "s-2", "s-3", "k-7", "k-8", fmt.Sprintf("k-%d", 10+rand.IntN(20))}[rand.IntN(6)]
			if _, err := replicas[rand.IntN(len(replicas))].decide(t.Context(), 1, key); err != nil {
				t.Fatal(err)
			}
		}
		if i == 200 {
			if err := replicas[0].put(t.Context(), "entities/key%2Fk-7/gpt-4", `{"limits": {"rpm": "90/minute"}}`); err != nil {
				t.Fatal(err)
			}
		}
		b.run(t, "a moment", chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
			select {
			case <-time.After(400 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}))
	}
	b.run(t, "the picture", chromedp.EmulateViewport(wide, 860), evaluate("scrollTo(0, 0); document.activeElement.blur()"), says("#top-rows", "key/"))
	b.picture(t, "console.png")
}
