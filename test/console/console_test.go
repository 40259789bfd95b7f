package console_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// update has the picture of the documentation taken again.
var update = flag.Bool("update", false, "write docs/console.png")

// browser is a tab of a Chromium, and the errors that it reported.
type browser struct {
	ctx    context.Context //nolint:containedctx // the tab itself, as chromedp has it
	errors *[]string
}

// startBrowser starts a browser for all tests.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", ".cache", "chromium", "chromium"))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("there is no browser; `make tools` installs it: %v", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1000, 900))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, closeAll := chromedp.NewContext(allocator)
	t.Cleanup(closeAll)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// openTab opens a tab that shares nothing with others.
func openTab(all context.Context, t *testing.T) browser {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(all, chromedp.WithNewBrowserContext())
	t.Cleanup(closeTab)
	b := browser{ctx, new([]string)}
	b.listen(t)
	t.Cleanup(func() {
		if len(*b.errors) > 0 {
			t.Errorf("the browser reports %q", *b.errors)
		}
	})
	return b
}

func TestConsole(t *testing.T) {
	s, all := startService(t), startBrowser(t)
	t.Run("operate", func(t *testing.T) { testOperate(t, s, openTab(all, t)) })   //nolint:contextcheck // a tab is a context of its own
	t.Run("balances", func(t *testing.T) { testBalances(t, s, openTab(all, t)) }) //nolint:contextcheck // a tab is a context of its own
	t.Run("screens", func(t *testing.T) { testScreens(t, s, openTab(all, t)) })   //nolint:contextcheck // a tab is a context of its own
	t.Run("mistakes", func(t *testing.T) { testMistakes(t, s, openTab(all, t)) }) //nolint:contextcheck // a tab is a context of its own
}

// listen records the errors of the page, such as requests that its policy refused.
func (b browser) listen(t *testing.T) {
	t.Helper()
	err := chromedp.Listen(b.ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			*b.errors = append(*b.errors, e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork {
				*b.errors = append(*b.errors, e.Entry.Text)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// step is an action of a tab.
type step = chromedp.Action[chromedp.Void]

// run makes steps, and fails the test where one fails.
func (b browser) run(t *testing.T, what string, steps ...step) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		page, _ := chromedp.Run(b.ctx, chromedp.Text("body"))
		t.Fatalf("%s: %v; the page says:\n%s\nerrors: %q", what, err, page, *b.errors)
	}
}

// holds waits until an expression is true in the page.
func holds(expression string) step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := chromedp.Poll[bool](expression)(ctx, t)
		return err
	})
}

// evaluate evaluates an expression in the page.
func evaluate(expression string) step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := chromedp.Evaluate[any]("(() => {"+expression+"; return true })()")(ctx, t)
		return err
	})
}

// says waits until an element has a text.
func says(selector, text string) step {
	return holds(fmt.Sprintf("[...document.querySelectorAll(%q)].some((e) => e.checkVisibility() && e.textContent.includes(%q))", selector, text))
}

// login opens the page and gives it a token.
func (b browser) login(t *testing.T, s *service, name string) {
	t.Helper()
	b.run(t, "login",
		chromedp.Navigate("http://"+s.admin+"/"), chromedp.WaitVisible("#login"),
		chromedp.SendKeys("#token", s.tokens[name]+kb.Enter), chromedp.WaitVisible("#main"), says("#service", name))
}

// A person watches decisions, finds a denied entity, sees why, and raises the limit.
func testOperate(t *testing.T, s *service, b browser) {
	t.Helper()
	b.login(t, s, "ada")
	b.run(t, "no cookie, nothing stored for longer than the tab",
		holds(`document.cookie === "" && localStorage.length === 0 && sessionStorage.length === 1`))
	if n, err := s.decide(t.Context(), 12, "key-1"); n != 5 || err != nil {
		t.Fatalf("admitted %d, %v; want 5", n, err)
	}
	b.run(t, "decisions", says("#live-legend", "denied"), holds(`document.querySelectorAll("#live-chart polyline").length >= 2`))
	b.run(t, "top", says("#top-rows", "key-1"), says("#top-rows td.number", "7"),
		chromedp.Click("input[value=busiest]"), says("#top-rows td.number", "5"))
	b.run(t, "entity from the top", chromedp.Click("#top-rows button"), says("#entity-title", "key-1"),
		says("#balances strong", "0"), holds(`document.querySelector("#balances polyline").getAttribute("points").split(" ").length >= 2`))
	b.run(t, "explain",
		chromedp.SendKeys("#domain", "shop"), chromedp.SendKeys("#entries", "api_key=key-1\nmodel=gpt-4"), chromedp.Click("#question button"),
		says("#explanation", "it would be denied"), says("#explanation td", "5/hour"))
	b.run(t, "set a limit",
		chromedp.SendKeys("#limit-entity", "key-1"), chromedp.SendKeys("#limit-resource", "gpt-4"), chromedp.Click("#which button"),
		chromedp.WaitVisible("#edit"), chromedp.SendKeys("#limits", "rpm: 100/hour burst 150"),
		chromedp.Click("#check"), says("#changed", "created when you save"), chromedp.Click("#save"), says("#changed", "in force"))
	if n, err := s.decide(t.Context(), 3, "key-1"); n != 3 || err != nil {
		t.Errorf("admitted %d, %v; want 3 under the new limit", n, err)
	}
	b.run(t, "balance follows", says("#balances", "burst 150"), says("#entity-limits", "burst 150"))
	b.run(t, "usage", chromedp.Click("#usage input[value=day]"), says("#usages", "gpt-4 rpm 8 in the last 30 days"),
		holds(`document.querySelectorAll("#usages rect").length === 30`), holds(`[...document.querySelectorAll("#usages title")].at(-1).textContent.endsWith("UTC: 8")`),
		chromedp.Click("#usage input[value=hour]"), says("#usages", "gpt-4 rpm 8 in the last 24 hours"), holds(`document.querySelectorAll("#usages rect").length === 24`))
	if *update {
		b.picture(t, s)
	}
}

// A person with the role operate changes a balance, and nothing else. Each change is confirmed.
func testBalances(t *testing.T, s *service, b browser) {
	t.Helper()
	if n, err := s.decide(t.Context(), 7, "key-7"); n != 5 || err != nil {
		t.Fatalf("admitted %d, %v; want 5", n, err)
	}
	b.login(t, s, "olga")
	verb := func(name string) step {
		return chromedp.Steps(chromedp.Click("#balances button[data-verb="+name+"]"), chromedp.WaitVisible("#adjust"))
	}
	confirm := func(amount string) step {
		return chromedp.Steps(chromedp.SetValue("#adjust-amount", amount), chromedp.Click("#adjust-do"))
	}
	b.run(t, "find", chromedp.SendKeys("#query", "key-7"), chromedp.Click("#search button"), says("#balances strong", "0"))
	b.run(t, "a change that is not confirmed", verb("reset"), says("#adjust-about", "of 5/hour"), chromedp.Click("#adjust-cancel"), chromedp.WaitNotVisible("#adjust"),
		verb("set"), chromedp.SendKeys("#adjust-amount", "3"), chromedp.KeyEvent(kb.Escape), chromedp.WaitNotVisible("#adjust"), says("#balances strong", "0"))
	if n, err := s.decide(t.Context(), 1, "key-7"); n != 0 || err != nil {
		t.Errorf("admitted %d, %v; want 0", n, err)
	}
	b.run(t, "set", verb("set"), confirm("2"), says("#adjusted", "gpt-4 rpm changed: 2"), chromedp.WaitNotVisible("#adjust"), says("#balances strong", "2"))
	b.run(t, "top up", verb("top-up"), confirm("1.5"), says("#adjusted", "changed: 3.5"))
	if n, err := s.decide(t.Context(), 9, "key-7"); n != 3 || err != nil {
		t.Errorf("admitted %d, %v; want 3", n, err)
	}
	b.run(t, "an amount that the service refuses", verb("set"), confirm("1e30"), says("#adjust .problem", "tokens"), chromedp.Click("#adjust-cancel"))
	b.run(t, "reset", verb("reset"), says("#adjust-title", "Reset rpm of key-7 for gpt-4?"), chromedp.Click("#adjust-do"), says("#adjusted", "changed: 5"))
	if n, err := s.decide(t.Context(), 9, "key-7"); n != 5 || err != nil {
		t.Errorf("admitted %d, %v; want 5", n, err)
	}
	b.run(t, "limits are not hers", holds(`document.querySelector("#save").disabled`))
}

// picture takes the picture of the documentation, with traffic of some seconds.
func (b browser) picture(t *testing.T, s *service) {
	t.Helper()
	for i := range 20 {
		for key, n := range map[string]int{"key-1": 2 + i%3, "key-2": 3 * (i % 4), "key-3": 1} {
			if _, err := s.decide(t.Context(), n, key); err != nil {
				t.Fatal(err)
			}
		}
		b.run(t, "a second", chromedp.Sleep(time.Second))
	}
	b.run(t, "picture", chromedp.EmulateViewport(1000, 1310), evaluate("scrollTo(0, 0); document.activeElement.blur()"), chromedp.Sleep(2*time.Second))
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("..", "..", "docs", "console.png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Mistakes are shown in the words of the service, and nothing is changed.
func testMistakes(t *testing.T, s *service, b browser) {
	t.Helper()
	b.run(t, "wrong token", chromedp.Navigate("http://"+s.admin+"/"), chromedp.WaitVisible("#login"),
		chromedp.SendKeys("#token", strings.Repeat("x", 40)+kb.Enter), says("#login .problem", "the token is not known"))
	b.login(t, s, "ada")
	edit := func(text string) step {
		return chromedp.Steps(chromedp.SetValue("#limits", text), chromedp.Click("#save"))
	}
	b.run(t, "wrong limits",
		chromedp.SetValue("#level", "resource"), evaluate(`document.querySelector("#level").dispatchEvent(new Event("change"))`),
		chromedp.SendKeys("#limit-resource", "gpt-4"), chromedp.Click("#which button"), chromedp.WaitVisible("#edit"),
		edit("rpm 100"), says("#change .problem", "is no limit"),
		edit("rpm: 100/fortnight"), says("#change .problem", "fortnight"),
		edit("rpm: 100/hour"), says("#changed", "created"))
	if err := s.put(t.Context(), `{"limits": {"rpm": "7/hour"}}`); err != nil {
		t.Fatal(err)
	}
	b.run(t, "another change came first", edit("rpm: 200/hour"), says("#change .problem", "Read the limits again"),
		chromedp.Click("#which button"), holds(`document.querySelector("#limits").value === "rpm: 7/hour"`))
	b.run(t, "no such entity", chromedp.SendKeys("#query", "<img src=x onerror=alert(1)>"), chromedp.Click("#search button"),
		says("#found-about", "no stored entity has “<img"), says("#entity-title", "<img"))
	b.run(t, "no such domain", chromedp.SendKeys("#domain", "shpo"), chromedp.SendKeys("#entries", "a=b"), chromedp.Click("#question button"), says("#explanation", "shop"))
	b.run(t, "log out", chromedp.Click("#leave"), chromedp.WaitVisible("#login"), holds("sessionStorage.length === 0"))
	b.login(t, s, "rob")
	b.run(t, "a reader cannot change anything", holds(`document.querySelector("#save").disabled`),
		chromedp.SetValue("#query", "key-1"), chromedp.Click("#search button"), says("#balances", "gpt-4 rpm"),
		holds(`[...document.querySelectorAll("#balances button")].every((b) => !b.checkVisibility())`))
}

// On a phone nothing is wider than the screen; in the dark the page is dark; the keyboard
// reaches everything.
func testScreens(t *testing.T, s *service, b browser) {
	t.Helper()
	b.run(t, "a phone", chromedp.EmulateViewport(375, 700))
	b.login(t, s, "ada")
	if _, err := s.decide(t.Context(), 8, strings.Repeat("a-long-name/", 8)); err != nil {
		t.Fatal(err)
	}
	b.run(t, "width", says("#top-rows", "a-long-name"), holds("document.documentElement.scrollWidth <= 375"))
	dark := chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
		return err
	})
	b.run(t, "dark", dark, holds(`getComputedStyle(document.body).backgroundColor === "rgb(20, 23, 28)"`))
	reached := map[string]bool{}
	for range 40 {
		b.run(t, "tab", chromedp.KeyEvent(kb.Tab))
		id, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.activeElement.id || document.activeElement.textContent.trim().slice(0, 12) || document.activeElement.value`))
		if err != nil {
			t.Fatal(err)
		}
		reached[id] = true
	}
	for _, want := range []string{"leave", "namespace", "denied", "query", "Search", "domain", "entries", "hits", "Explain", "level", "limit-entity", "Read"} {
		if !reached[want] {
			t.Errorf("the tab key does not reach %s, of %v", want, reached)
		}
	}
}
