package console_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// update has the pictures of the documentation taken again.
var update = flag.Bool("update", false, "write the pictures of the documentation")

// Each page works on each store. On Valkey those are tested that show its own parts: the state of the store, usage, balances.
// The rest of that store is that of a table on DynamoDB.
func TestConsole(t *testing.T) {
	all := startBrowser(t)
	for name, store := range stores {
		if *update && name != "embedded" {
			continue // one of them gives the pictures
		}
		t.Run(name, func(t *testing.T) {
			s := startService(t, store(t)) //nolint:contextcheck // a program is of the test, and the browser of all
			// first: the changes of other tests take the place of the start among its events
			t.Run("now", func(t *testing.T) { testNow(t, s, openTab(all, t)) }) //nolint:contextcheck // calls are of the test, and the browser of all
			for test, fn := range map[string]func(*testing.T, *service, browser){
				"entity": testEntity, "balances": testBalances, "sources": testSources, "limits": testLimits,
				"explain": testExplain, "audit": testAudit, "mistakes": testMistakes, "keyboard": testKeyboard, "hostile": testHostile, "many": testMany,
			} {
				if name == "valkey" && !slices.Contains([]string{"entity", "balances"}, test) || name != "embedded" && test == "many" {
					continue
				}
				t.Run(test, func(t *testing.T) { fn(t, s, openTab(all, t)) })
			}
		})
	}
}

// The library for charts is that of its package.
func TestLibrary(t *testing.T) {
	for own, theirs := range map[string]string{"uplot.js": "uPlot.esm.js", "uplot.css": "uPlot.min.css"} {
		got, err := os.ReadFile(filepath.Join("..", "..", "pkg", "admin", "console", own))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(cached(t, "console", "node_modules", "uplot", "dist", theirs))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not %s of the package", own, theirs)
		}
	}
}

// spend asks n times for a hit of a key, and again until a change is in force. It requires how many are admitted.
func (s *service) spend(t *testing.T, key string, n, want int) {
	t.Helper()
	got, err := s.decide(t.Context(), n, key)
	for began := time.Now(); got < want && err == nil && time.Since(began) < inForceWithin; {
		<-time.After(100 * time.Millisecond)
		var more int
		more, err = s.decide(t.Context(), 1, key)
		got += more
	}
	if got != want || err != nil {
		t.Fatalf("%s: admitted %d, %v; want %d", key, got, err, want)
	}
}

// inForceWithin is how long a change takes on a busy machine, at most.
const inForceWithin = 15 * time.Second

// The first page shows health, decisions, who is limited and why, and what happened.
func testNow(t *testing.T, s *service, b browser) {
	t.Helper()
	s.spend(t, "now-1", 12, 5)
	b.login(t, s, "ada")
	b.run(t, "no cookie, nothing stored for longer than the tab",
		holds(`document.cookie === "" && localStorage.length === 0 && sessionStorage.length === 1`))
	b.run(t, "health", seen(`#health [data-name="Store"].good`), says(`#health [data-name="Configuration"].good`, "in force"), says(`#health [data-name="Replicas"]`, "1 ready"),
		says(`#health [data-name="Aggregator"].good`, s.aggregator))
	b.run(t, "decisions", says("#live-legend", "denied"), holds(`document.querySelector("#live-chart canvas") !== null`))
	b.run(t, "who is limited, and why", says("#top-rows", "key/now-1"), says("#top-rows td.number", "7"), says("#top-rows td.quiet", "5/hour, system (file)"))
	b.run(t, "the busiest", click("input[value=busiest]"), says("#top-rows td.number", "5"))
	b.run(t, "what happened", says("#events", "start"))
	if err := s.put(t.Context(), "entities/key%2Fnow-2/now", `{"limits": {"rpm": "7/hour"}}`); err != nil {
		t.Fatal(err)
	}
	b.run(t, "a change", says("#events", "limits.put"), says("#events", "key/now-2"))
	b.run(t, "its entity", click(`#top-rows a[href*="now-1"]`), says("#entity-title", "key/now-1"), says("#denied", "7 by rpm"))
	b.run(t, "back", page("#now"), seen("#now"), says("#top-rows", "key/now-1"))
	b.look(t, "now")
}

// The page of an entity shows its parents, the limits that decide, balances, usage and changes.
func testEntity(t *testing.T, s *service, b browser) {
	t.Helper()
	s.spend(t, "s-1", 5, 5)
	b.login(t, s, "ada")
	b.run(t, "a search finds it behind the prefix of the rules", chromedp.SendKeys("#query", "s-1"+kb.Enter), says("#entity-title", "key/s-1"))
	b.run(t, "its parents", says("#chain", "project/search"), says("#chain", "org/acme"), says("#entity-marks", "file"))
	b.run(t, "limits in force", says("#balance-rows tr[data-resource=gpt-4][data-limit=rpm]", "5/hour"), says("#balance-rows tr[data-limit=rpm]", "system (file)"),
		says("#balance-rows tr[data-resource=gpt-4][data-limit=rpm] .gauge", "0"), says("#balance-rows tr[data-limit=tpd]", "of 1,000,000 this day"), says("#balance-rows", "shadow"))
	b.run(t, "usage", says("#usages", "gpt-4 tpd"), says("#usages", "the last 24 hours"), click("#usage input[value=day]"), says("#usages", "the last 30 days"), says("#usages", "2,000 of 1,000,000"),
		holds(`JSON.parse(document.querySelector("#usages .chart").dataset.values).at(-1) === 2000`),
		click("#usage input[value=month]"), says("#usages", "the last 12 months"))
	b.run(t, "its parent", click("#chain a"), says("#entity-title", "project/search"), says("#children", "key/s-1"))
	b.run(t, "disable", page("#entity?id=key%2Fs-1"), says("#entity-title", "key/s-1"), click("#entity-verbs button[data-verb=disable]"), seen("#adjust"),
		chromedp.SendKeys("#adjust-reason", "leaked key"), click("#adjust-do"), says("#changed-here", "disabled"), says("#entity-marks", "disabled"), says("#history-rows", "disable"))
	s.spend(t, "s-1", 1, 0)
	b.run(t, "the list of what is disabled", page("#entities"), says("#disabled", "key/s-1"), says("#disabled", "leaked key"))
	b.look(t, "entities")
	b.run(t, "enable", page("#entity?id=key%2Fs-1"), seen("#entity-verbs button[data-verb=enable]"), click("#entity-verbs button"), seen("#adjust"),
		click("#adjust-do"), says("#changed-here", "enabled"), says("#balance-rows tr[data-limit=tpd]", "of 1,000,000"), says("#usages", "gpt-4"))
	b.look(t, "entity")
	b.run(t, "an ID that nothing knows", chromedp.SendKeys("#query", "nobody-knows"+kb.Enter), says("#found-about", "No entity"), click("#found-about a"), says("#entity-marks", "not stored"))
}

// A person with the role operate changes a balance, and nothing else. Each change is confirmed.
func testBalances(t *testing.T, s *service, b browser) {
	t.Helper()
	s.spend(t, "key-7", 7, 5)
	b.login(t, s, "olga")
	row := "#balance-rows tr[data-resource=gpt-4][data-limit=rpm]"
	verb := func(name string) step {
		return chromedp.Steps(click(row+" button[data-verb="+name+"]"), seen("#adjust"))
	}
	confirm := func(amount string) step {
		return chromedp.Steps(fill("#adjust-amount", amount), click("#adjust-do"))
	}
	left := func(tokens string) step { // and what was refilled since
		return holds(fmt.Sprintf("document.querySelector(%q)?.textContent.split('.')[0] === %q", row+" .value", tokens))
	}
	b.run(t, "find", page("#entity?id=key%2Fkey-7"), left("0"))
	b.run(t, "a change that is not confirmed", verb("reset"), says("#adjust-about", "of 5/hour"), click("#adjust-cancel"), unseen("#adjust"),
		verb("set"), chromedp.SendKeys("#adjust-amount", "3"), chromedp.KeyEvent(kb.Escape), unseen("#adjust"), left("0"))
	s.spend(t, "key-7", 1, 0)
	b.run(t, "set", verb("set"), confirm("2"), says("#changed-here", "gpt-4 rpm changed: 2"), unseen("#adjust"), says(row, "2"))
	b.run(t, "top up", verb("top-up"), confirm("1.5"), says("#changed-here", "changed: 3.5"))
	s.spend(t, "key-7", 9, 3)
	b.run(t, "an amount that the service refuses", verb("set"), confirm("1e30"), says("#adjust .problem", "tokens"), click("#adjust-cancel"))
	tried := "#balance-rows tr[data-resource=gpt-4][data-limit='rpm.shadow'] button[data-verb="
	b.run(t, "reset a limit that is tried", click(tried+"reset]"), says("#adjust-title", "Reset rpm.shadow of key/key-7"), click("#adjust-do"), says("#changed-here", "gpt-4 rpm.shadow changed: 4"))
	b.run(t, "reset", verb("reset"), says("#adjust-title", "Reset rpm of key/key-7 for gpt-4?"), click("#adjust-do"), says("#changed-here", "changed: 5"), says("#history-rows", "olga"))
	s.spend(t, "key-7", 9, 5)
	b.run(t, "limits are not hers", page("#limits"), seen("#limit-rows tr"), holds(`[...document.querySelectorAll(".administer")].every((e) => !e.checkVisibility())`))
}

// The limit that decides is shown, and no other in its place: that of a rule, or a quota in its window.
func testSources(t *testing.T, s *service, b browser) {
	t.Helper()
	for _, of := range []struct {
		key, value string
		want       int
	}{{"gated", "g-1", 2}, {"pupil", "p-1", 4}} {
		if got, err := s.call(t.Context(), of.want+3, map[string]string{"key": of.key, "value": of.value}); got != of.want || err != nil {
			t.Fatalf("%s: admitted %d, %v; want %d", of.value, got, err, of.want)
		}
	}
	b.login(t, s, "ada")
	because := func(entity, why string) step {
		return holds(fmt.Sprintf(`[...document.querySelectorAll("#top-rows tr")].some((e) => e.textContent.includes(%q) && e.textContent.includes(%q))`, entity, why))
	}
	b.run(t, "why", because("gate/g-1", "2/hour, rule gated"), because("pupil/p-1", "4/month"))
	rows := func(limit string) string {
		return fmt.Sprintf(`document.querySelectorAll('#balance-rows tr[data-resource=web][data-limit=%s]').length === 1`, limit)
	}
	b.run(t, "the limit of a rule", page("#entity?id=gate%2Fg-1"), says("#balance-rows tr[data-resource=web][data-limit=rpm]", "rule gated"), holds(rows("rpm")))
	b.run(t, "a quota", page("#entity?id=pupil%2Fp-1"), says("#balance-rows tr[data-limit=lessons] .value", "0"), holds(rows("lessons")),
		says("#balance-rows tr[data-resource=web][data-limit=lessons]", "4/month"))
	b.run(t, "its balance is set", click("#balance-rows tr[data-resource=web][data-limit=lessons] button[data-verb=set]"), seen("#adjust"), fill("#adjust-amount", "1"), click("#adjust-do"),
		says("#changed-here", "changed: 1"), says("#balance-rows tr[data-resource=web][data-limit=lessons] .value", "1"))
	b.look(t, "")
	b.run(t, "a dialog closes with its page", click("#balance-rows tr[data-resource=web][data-limit=lessons] button[data-verb=reset]"), seen("#adjust"), page("#entities"), unseen("#adjust"),
		says("#busiest", "gate/g-1"))
}

// The page of limits shows those of the file and of the store, and a change before it is made.
func testLimits(t *testing.T, s *service, b browser) {
	t.Helper()
	b.login(t, s, "ada")
	b.run(t, "every place", page("#limits"), says("#limit-rows", "system"), says("#limit-rows", "free"), says("#limit-rows", "uploads of domain shop"), says("#limit-rows", "org/acme"), says("#limit-rows .mark", "shadow"))
	b.run(t, "a search", chromedp.SendKeys("#limits-text", "uploads"), says("#limit-rows", "500/hour"), holds(`!document.querySelector("#limit-rows").textContent.includes("org/acme")`), fill("#limits-text", ""))
	b.run(t, "an exception for one customer", page("#limits?level=entity&entity=key%2Flimited-customer&resource=gpt-4"), seen("#edit"), says("#changed", "None are stored here"), says("#decides", "5/hour, system (file)"),
		chromedp.SendKeys("#lines", "rpm: 7/hour"), chromedp.SendKeys("#limits-reason", "a good customer"), click("#check"), says("#changed", "created when you save"),
		says("#decides tr.differs", "7/hour, entity (stored)"), says("#touches", "key/limited-customer"))
	b.look(t, "limits")
	b.run(t, "save", click("#save"), says("#changed", "in force"), says("#limit-rows", "7/hour"))
	s.spend(t, "limited-customer", 9, 7)
	if err := s.put(t.Context(), "entities/project%2Fsearch/gpt-4", `{"limits": {"rpm": "300/hour"}}`); err != nil {
		t.Fatal(err)
	}
	b.run(t, "a stored limit masks that of the file", click("#edit-close"), fill("#limits-text", ""), chromedp.SendKeys("#limits-text", "search"), says("#limit-rows .masked", "400/hour"))
	b.run(t, "whom a resource touches", page("#limits?level=resource&resource=gpt-4"), seen("#edit"), says("#changed", "None"), chromedp.SendKeys("#lines", "rpm: 9/hour"), click("#check"), says("#touches", "every entity for gpt-4"))
	b.run(t, "delete", page("#limits?level=entity&entity=key%2Flimited-customer&resource=gpt-4"), seen("#drop"), click("#drop"), says("#changed", "deleted"), says("#decides tr.differs", "5/hour, system (file)"))
}

// What Envoy sent is explained, and a descriptor of lines too.
func testExplain(t *testing.T, s *service, b browser) {
	t.Helper()
	s.spend(t, "x-1", 6, 5)
	b.login(t, s, "ada")
	b.run(t, "a call", page("#explain"), seen("#question"),
		chromedp.SendKeys("#entries", `{"domain": "shop", "descriptors": [{"entries": [{"key": "api_key", "value": "x-1"}, {"key": "model", "value": "gpt-4"}]}]}`),
		click("#question button"), says("#explanation .verdict", "The call would be denied"), says("#explanation td", "5/hour"), says("#explanation td", "not enough"))
	b.look(t, "explain")
	b.run(t, "lines", fill("#entries", ""), chromedp.SendKeys("#entries", "api_key=x-2\nmodel=gpt-4"), chromedp.SendKeys("#domain", "shop"), click("#question button"), says("#explanation .verdict", "admitted"))
	b.run(t, "no such domain", fill("#domain", "shpo"), click("#question button"), says("#explanation", "shop"))
	b.run(t, "no JSON", fill("#entries", "{"), click("#question button"), says("#question .problem", "no JSON"))
}

// The audit has every change, and those of one subject, one person, or one kind.
func testAudit(t *testing.T, s *service, b browser) {
	t.Helper()
	for _, entity := range []string{"key%2Fa-1", "key%2Fa-2"} {
		if err := s.put(t.Context(), "entities/"+entity+"/gpt-4", `{"limits": {"rpm": "8/hour"}}`); err != nil {
			t.Fatal(err)
		}
	}
	b.login(t, s, "ada")
	only := func(text, not string) step {
		return holds(fmt.Sprintf("((t) => t.includes(%q) && !t.includes(%q))(document.querySelector('#audit-rows').textContent)", text, not))
	}
	b.run(t, "everything", page("#audit"), says("#audit-rows", "key/a-1"), says("#audit-rows", "key/a-2"), says("#audit-rows", "ada"))
	b.look(t, "audit")
	b.run(t, "before and after", click("#audit-rows summary"), says("#audit-rows pre", "8/hour"))
	b.run(t, "of an entity", chromedp.SendKeys("#audit-subject", "key/a-1"+kb.Enter), only("key/a-1", "key/a-2"))
	b.run(t, "of a person", fill("#audit-principal", "nobody"), click("#audit-filter button"), says("#audit-rows", "no change fits"))
	b.run(t, "of a kind", fill("#audit-principal", ""), fill("#audit-action", "limits.put"), click("#audit-filter button"), only("limits.put", "entity.put"))
}

// Mistakes are shown in the words of the service, and nothing is changed.
func testMistakes(t *testing.T, s *service, b browser) {
	t.Helper()
	b.run(t, "wrong token", chromedp.Navigate("http://"+s.admin+"/"), seen("#login"),
		chromedp.SendKeys("#token", strings.Repeat("x", 40)+kb.Enter), says("#login .problem", "the token is not known"))
	b.look(t, "login")
	b.login(t, s, "ada")
	b.run(t, "a page that is none", page("#constructor"), seen("#now"), page("#limits"), says("#limit-rows", "system"))
	edit := func(text string) step {
		return chromedp.Steps(fill("#lines", text), click("#save"))
	}
	b.run(t, "wrong limits", page("#limits?level=resource&resource=gpt-5"), seen("#edit"), says("#changed", "None"),
		edit("rpm 100"), says("#edit .problem", "is no limit"),
		edit("rpm: 100/fortnight"), says("#edit .problem", "fortnight"),
		edit("rpn: 100/hour"), says("#edit .problem", "rpn"))
	b.run(t, "another level than was read", edit("rpm: 100/hour"))
	if err := s.put(t.Context(), "resources/gpt-6", `{"limits": {"rpm": "7/hour"}}`); err != nil {
		t.Fatal(err)
	}
	b.run(t, "another change came first", page("#limits?level=resource&resource=gpt-6"), holds(`document.querySelector("#lines").value === "rpm: 7/hour"`))
	if err := s.put(t.Context(), "resources/gpt-6", `{"limits": {"rpm": "8/hour"}}`); err != nil {
		t.Fatal(err)
	}
	b.run(t, "another change came first", edit("rpm: 200/hour"), says("#edit .problem", "Read the limits again"), click("#read"), holds(`document.querySelector("#lines").value === "rpm: 8/hour"`))
	b.run(t, "log out", click("#leave"), seen("#login"), holds("sessionStorage.length === 0"))
	b.login(t, s, "rob")
	b.run(t, "a reader cannot change anything", page("#entity?id=key%2Fkey-7"), says("#balance-rows", "5/hour"),
		holds(`[...document.querySelectorAll(".operate, .administer")].every((e) => !e.checkVisibility())`))
}

// The keyboard alone reaches every page, and everything on it.
func testKeyboard(t *testing.T, s *service, b browser) {
	t.Helper()
	s.spend(t, "tab-1", 7, 5)
	b.login(t, s, "ada")
	b.run(t, "the search", evaluate("document.activeElement.blur()"), chromedp.KeyEvent("/"), holds(`document.activeElement.id === "query"`),
		chromedp.KeyEvent("tab-1"+kb.Enter), says("#entity-title", "key/tab-1"), holds(`document.activeElement.id === "entity-title"`), seen("#balance-rows button"))
	for _, tt := range []struct {
		hash string
		want []string
	}{
		{"#now", []string{"Skip to the page", "Now", "Entities", "Limits", "Explain", "Audit", "query", "namespace", "denied", "leave"}},
		{"#entity?id=key%2Ftab-1", []string{"Change limits", "Disable", "Top up", "Set", "Reset", "hour"}},
		{"#limits", []string{"new-limits", "limits-text", "limits-from", "Override"}},
		{"#explain", []string{"entries", "domain", "hits", "Explain"}},
		{"#audit", []string{"audit-subject", "audit-principal", "audit-action", "audit-from", "audit-to", "Show"}},
	} {
		b.run(t, tt.hash, page("#explain"), seen("#question"), page(tt.hash), seen(strings.Split(tt.hash, "?")[0]))
		if tt.hash == "#entity?id=key%2Ftab-1" {
			b.run(t, tt.hash, seen("#balance-rows button"), seen("#entity-verbs button"))
		}
		if tt.hash == "#limits" {
			b.run(t, tt.hash, seen("#limit-rows button"))
		}
		reached := b.tab(t, 60)
		for _, want := range tt.want {
			if !reached[want] {
				t.Errorf("%s: the tab key does not reach %s, of %v", tt.hash, want, reached)
			}
		}
	}
}

// tab presses the tab key, and returns what it reached: IDs, texts and values.
func (b browser) tab(t *testing.T, times int) map[string]bool {
	t.Helper()
	reached := map[string]bool{}
	b.run(t, "the begin", evaluate(`document.activeElement.blur(); document.querySelector(".skip").focus()`))
	for range times {
		ids, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](`((e) => [e.id, e.textContent.trim(), e.value || ""])(document.activeElement)`))
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			reached[id] = true
		}
		b.run(t, "tab", chromedp.KeyEvent(kb.Tab))
	}
	return reached
}

// Names that are markup, control characters, written from right to left or very long are text on every page.
func testHostile(t *testing.T, s *service, b browser) {
	t.Helper()
	names := []string{"<img src=x onerror=alert(1)>", "a\u202eb\u0007c\u0000d", strings.Repeat("long-name-", 800), `"' & ${x} {{y}}`}
	for _, name := range names {
		s.spend(t, name, 6, 5)
	}
	b.login(t, s, "ada")
	b.run(t, "now", says("#top-rows", "<img"), says("#top-rows", "long-name"))
	b.look(t, "")
	for _, name := range names {
		id := "key/" + strings.NewReplacer("%", "%25", "/", "%2F").Replace(name)
		b.run(t, "the entity", evaluate(fmt.Sprintf(`location.hash = "entity?" + new URLSearchParams({id: %q})`, id)), says("#balance-rows", "5/hour"), chromedp.Sleep(0))
		b.look(t, "")
	}
	long := strings.Repeat("edit-", 60)
	for _, of := range []string{long, "%FFedit"} {
		if err := s.put(t.Context(), "entities/"+of+"/gpt-4", `{"limits": {"rpm": "6/hour"}}`); err != nil {
			t.Fatal(err)
		}
	}
	row := func(text string) string {
		return fmt.Sprintf(`[...document.querySelectorAll("#limit-rows tr")].find((e) => e.textContent.includes(%q)).querySelector("button")`, text)
	}
	b.run(t, "limits of a name that no field can have", page("#limits"), says("#limit-rows", "base64:"), holds(row("base64:")+` === null`))
	b.run(t, "limits of a name that no address can have", page("#limits?level=entity&entity=..&resource=system"), says("#edit .problem", "No address"), click("#save"), says("#edit .problem", "No address"),
		holds(`document.querySelector("#decides").textContent === ""`), page("#entity?id=.."), says("#family .problem", "No address"), page("#limits"))
	b.run(t, "limits of a long name", says("#limit-rows", "edit-edit"), evaluate(row("edit-edit")+".click()"), says("#drop", "Delete"),
		holds(fmt.Sprintf(`document.querySelector("#limit-entity").value === %q`, long)), holds(`document.querySelector("#lines").value === "rpm: 6/hour"`))
	b.run(t, "a search", chromedp.SendKeys("#query", names[0]+kb.Enter), says("#entity-title", names[0]), holds(`document.querySelectorAll("main img").length === 0`), page("#audit?subject=%3Cscript%3E"), says("#audit-rows", "no change fits"))
}

// A list that a page does not show in whole says so.
func testMany(t *testing.T, s *service, b browser) {
	t.Helper()
	for i := range 503 {
		if err := s.change(t.Context(), fmt.Sprintf("many/limits/entities/user-%d/gpt-4?allowNew=true", i), `{"limits": {"rpm": "6/hour"}}`); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 101 {
		if err := s.change(t.Context(), fmt.Sprintf("many/disabled/entities/user-%d", i), ""); err != nil {
			t.Fatal(err)
		}
	}
	b.login(t, s, "ada")
	b.run(t, "what is disabled", fill("#namespace", "many"), page("#entities"), says("#disabled", "user-0"), says("#disabled", "and more"))
	more := chromedp.Steps(seen("#limits-more"), click("#limits-more"))
	b.run(t, "limits", page("#limits"), says("#limit-rows", "user-0"), says("#limits-more", "More (2"), more, says("#limits-more", "More (4"), more, unseen("#limits-more"),
		holds(`document.querySelectorAll("#limit-rows tr").length === 501`), says("#limit-rows", "more: a search finds them"))
	b.look(t, "")
}
