package console_test

import (
	"context"
	"encoding/json"
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

// browser is a tab of a Chromium, and the errors that it reported.
type browser struct {
	ctx    context.Context //nolint:containedctx // the tab itself, as chromedp has it
	errors *[]string
}

// cached is a file that make has installed.
func cached(t *testing.T, name ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(append([]string{"..", "..", ".cache"}, name...)...))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("`make tools` installs it: %v", err)
	}
	return path
}

// startBrowser starts a browser for all tests.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(cached(t, "chromium", "chromium")), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(wide, 900))
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

// listen records the errors of the page, such as requests that its policy refused.
func (b browser) listen(t *testing.T) {
	t.Helper()
	err := chromedp.Listen(b.ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			text := e.ExceptionDetails.Text
			if e.ExceptionDetails.Exception != nil {
				text += " " + e.ExceptionDetails.Exception.Description
			}
			*b.errors = append(*b.errors, text)
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
		ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
		defer cancel()
		page, _ := chromedp.Run(ctx, chromedp.Text("body"))
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

// seen waits until an element is seen, and unseen until none is.
func seen(selector string) step {
	return holds(fmt.Sprintf("document.querySelector(%q)?.checkVisibility() === true", selector))
}

func unseen(selector string) step {
	return holds(fmt.Sprintf("document.querySelector(%q)?.checkVisibility() !== true", selector))
}

// click clicks an element when it is seen, wherever it is on the page.
func click(selector string) step {
	return chromedp.Steps(seen(selector), evaluate(fmt.Sprintf("document.querySelector(%q).click()", selector)))
}

// fill writes a text in place of that of a field, as a person does.
func fill(selector, text string) step {
	return chromedp.Steps(seen(selector),
		evaluate(fmt.Sprintf(`const e = document.querySelector(%q); e.value = %q; for (const name of ["input", "change"]) e.dispatchEvent(new Event(name, {bubbles: true}))`, selector, text)))
}

// page opens a page of the console by its address.
func page(hash string) step { return evaluate(fmt.Sprintf("location.hash = %q", hash)) }

// login opens the page and gives it a token.
func (b browser) login(t *testing.T, s *service, name string) {
	t.Helper()
	b.run(t, "login",
		chromedp.Navigate("http://"+s.admin+"/"), seen("#login"),
		chromedp.SendKeys("#token", s.tokens[name]+kb.Enter), seen("#now"), says("#service", name))
}

// The widths of a screen and of a phone, in pixels.
const wide, narrow = 1280, 390

// scheme has the page in light or dark colors.
func scheme(name string) step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
		return err
	})
}

// look holds the page at hand to the rules of accessibility, on a screen and on a phone, in light and in dark.
// Nothing may be wider than the screen. With -update, and a name, pictures of it are written for
// docs/design/console.md.
func (b browser) look(t *testing.T, name string) {
	t.Helper()
	for _, width := range []int{wide, narrow} {
		for _, colors := range []string{"dark", "light"} {
			b.run(t, name, chromedp.EmulateViewport(int64(width), 900), scheme(colors), evaluate("document.activeElement.blur()"), holds(fmt.Sprintf("innerWidth === %d", width)))
			outside := b.outside(t)
			for range 50 { // charts follow the width a moment later
				if len(outside) == 0 {
					break
				}
				b.run(t, name, chromedp.Sleep(100*time.Millisecond))
				outside = b.outside(t)
			}
			if len(outside) > 0 {
				t.Errorf("%s: wider than %d px are %q", name, width, outside)
			}
			b.check(t, fmt.Sprintf("%s, %d px, %s", name, width, colors))
		}
		if *update && name != "" {
			b.picture(t, filepath.Join("design", "console", fmt.Sprintf("%s-%d.png", name, width)))
		}
	}
	b.run(t, name, chromedp.EmulateViewport(wide, 900))
}

// outside returns the elements that make the page wider than the screen.
func (b browser) outside(t *testing.T) []string {
	t.Helper()
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](`document.documentElement.scrollWidth <= innerWidth ? [] :
		[...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth && !e.parentElement.closest(".wide, pre")).map((e) => e.outerHTML.slice(0, 150)).concat(document.documentElement.scrollWidth + " px of the document")`))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// check runs axe-core on the page.
func (b browser) check(t *testing.T, name string) {
	t.Helper()
	library, err := os.ReadFile(cached(t, "console", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	b.run(t, "axe-core", evaluate("if (!window.axe) {"+string(library)+"}; axe.run().then((r) => { window.found = JSON.stringify(r.violations.map((v) => v.id + \": \" + v.nodes.map((n) => n.html + \" \" + n.failureSummary).join(\"; \"))) }); window.found = \"\""),
		holds(`window.found !== ""`))
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("window.found"))
	if err != nil {
		t.Fatal(err)
	}
	var violations []string
	if err := json.Unmarshal([]byte(found), &violations); err != nil {
		t.Fatal(err)
	}
	if len(violations) > 0 {
		t.Errorf("%s: axe-core finds\n%s", name, strings.Join(violations, "\n"))
	}
}

// picture writes what the page shows into a file of the documentation.
func (b browser) picture(t *testing.T, name string) {
	t.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("..", "..", "docs", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, png, 0o644); err != nil {
		t.Fatal(err)
	}
}
