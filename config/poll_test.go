package config

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// polled is a configuration that is watched by comparing contents only, in fake time.
type polled struct {
	t   *testing.T
	dir string
	ask chan struct{}

	mu  sync.Mutex
	got []string // delivered since the last expect
}

// poll writes a configuration, watches it with the default times, and runs a script.
func poll(t *testing.T, files map[string]string, script func(*polled)) {
	t.Helper()
	p := &polled{t: t, dir: t.TempDir()}
	for name, data := range files {
		p.write(name, data)
	}
	synctest.Test(t, func(t *testing.T) {
		p.t, p.ask = t, make(chan struct{})
		main := filepath.Join(p.dir, "ratelimit.yaml")
		current, err := Load(main, Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		w := newWatcher(main, Options{Current: current, Reload: p.ask}, p.deliver)
		go func() {
			defer close(done)
			w.run(ctx)
		}()
		synctest.Wait() // Watch has compared the files with those of Load
		script(p)
		cancel()
		<-done
	})
}

func (p *polled) deliver(c *Config, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.got = append(p.got, strings.ReplaceAll(err.Error(), p.dir+"/", ""))
		return
	}
	var names []string
	for _, d := range c.Rules.Domains() {
		names = append(names, d.Name())
	}
	p.got = append(p.got, strings.Join(names, " "))
}

// write writes a file in place.
func (p *polled) write(name, data string) {
	p.t.Helper()
	name = filepath.Join(p.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(data), 0o600)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *polled) remove(name string) {
	p.t.Helper()
	if err := os.Remove(filepath.Join(p.dir, name)); err != nil {
		p.t.Fatal(err)
	}
}

// expect lets time pass and compares the deliveries in it.
func (p *polled) expect(after time.Duration, want ...string) {
	p.t.Helper()
	time.Sleep(after)
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if diff := cmp.Diff(want, p.got); diff != "" {
		p.t.Errorf("delivered (-want +got):\n%s", diff)
	}
	p.got = nil
}

const (
	oneDomain  = "domains: [{domain: one}]\n"
	twoDomains = "domains:\n- domain: one\n- domain: two\n"
	noDomain   = "ratelimit.yaml: has no domain, nor has a file that it includes: nothing would be limited; the domains stand under domains, or in files under include"
	twoIsGone  = "the files have no rules of the domain two, which is in force: its rules stay for at least 5s, and end then if the files still have none"
)

func TestWriteInPlaceCountsWhenItIsStill(t *testing.T) {
	poll(t, map[string]string{"ratelimit.yaml": oneDomain}, func(p *polled) {
		p.write("ratelimit.yaml", "domains: [{domain: one}, {domain: x")
		p.expect(4 * time.Second) // seen at 3s
		p.write("ratelimit.yaml", "domains: [{domain: one}, {domain: two}]\n")
		p.expect(2900 * time.Millisecond) // seen at 5s
		p.expect(time.Second, "one two")
	})
}

func TestFilesWithoutDomainsAreRefused(t *testing.T) {
	for name, data := range map[string]string{"empty": "", "null": "null\n", "comment": "# nothing\n", "settings": "drain: 1s\n", "pattern": "include: [{path: '*.none'}]\n"} {
		t.Run(name, func(t *testing.T) {
			poll(t, map[string]string{"ratelimit.yaml": oneDomain}, func(p *polled) {
				p.write("ratelimit.yaml", data)
				p.expect(time.Minute, noDomain)
				p.write("ratelimit.yaml", oneDomain)
				p.expect(time.Minute, "one")
			})
		})
	}
}

func TestDomainThatVanishesStaysFor5Seconds(t *testing.T) {
	files := map[string]string{"ratelimit.yaml": "include: [{path: 'rules.d/*.yaml'}]\n", "rules.d/one.yaml": "domain: one\n", "rules.d/two.yaml": "domain: two\n"}
	t.Run("and goes", func(t *testing.T) {
		poll(t, files, func(p *polled) {
			p.remove("rules.d/two.yaml")
			p.expect(3*time.Second+time.Millisecond, twoIsGone) // no file is missing from a pattern
			p.expect(4900 * time.Millisecond)
			p.expect(time.Second, "one")
		})
	})
	t.Run("and is back", func(t *testing.T) {
		poll(t, files, func(p *polled) {
			p.remove("rules.d/two.yaml")
			p.expect(4*time.Second, twoIsGone)
			p.write("rules.d/two.yaml", "domain: two\n")
			p.expect(time.Minute, "one two")
		})
	})
	t.Run("and a mistake in between tells nothing", func(t *testing.T) {
		poll(t, files, func(p *polled) {
			p.remove("rules.d/two.yaml")
			p.expect(4*time.Second, twoIsGone) // at 3s
			p.write("rules.d/one.yaml", "domain: one\nrulez: []\n")
			p.expect(4*time.Second, "rules.d/one.yaml:2: rulez: unknown key \"rulez\"; did you mean \"rules\"? (known here: domain, namespace, unmatched, body, resources, rules)") // at 8s
			p.write("rules.d/one.yaml", "domain: one\n")
			p.expect(6*time.Second, twoIsGone) // at 11s
			p.expect(6*time.Second, "one")
		})
	})
	t.Run("all", func(t *testing.T) {
		poll(t, files, func(p *polled) {
			p.remove("rules.d/one.yaml")
			p.remove("rules.d/two.yaml")
			p.expect(time.Minute, noDomain)
		})
	})
	t.Run("with new ones beside it", func(t *testing.T) {
		poll(t, map[string]string{"ratelimit.yaml": twoDomains}, func(p *polled) {
			p.write("ratelimit.yaml", "domains: [{domain: one}, {domain: three}]\n")
			p.expect(6*time.Second, twoIsGone)
			p.expect(5*time.Second, "one three")
		})
	})
}

// A file that was cut off after its first lines has a domain and no list of rules. Its rules stay
// in force for as long as it is so. An empty list takes effect when two reads find it.
func TestDomainThatLosesItsRules(t *testing.T) {
	const (
		rules   = "  rules: [{match: {a: '*'}, unlimited: true}]\n"
		emptied = "the files have the domain two without a list of rules, and it has rules in force: is a file cut off? rules: [] says that there are none"
	)
	for name, test := range map[string]struct{ domain, cut, end, none string }{
		"configuration":        {"domains:\n- domain: two\n" + rules, "ratelimit.yaml", rules, "  rules: []\n"},
		"a key alone":          {"domains:\n- domain: two\n" + rules, "ratelimit.yaml", rules[len("  rules: "):], "[]\n"},
		"envoyproxy/ratelimit": {"include: [{path: two.yaml}]\n", "two.yaml", "descriptors: [{key: a, rate_limit: {unlimited: true}}]\n", "descriptors: []\n"},
	} {
		files := map[string]string{"ratelimit.yaml": test.domain, "two.yaml": "domain: two\ndescriptors: [{key: a, rate_limit: {unlimited: true}}]\n"}
		t.Run(name, func(t *testing.T) {
			poll(t, files, func(p *polled) {
				whole := files[test.cut]
				begin, ok := strings.CutSuffix(whole, test.end)
				if !ok {
					t.Fatal("the file is not that of this test")
				}
				p.write(test.cut, begin)
				p.expect(time.Hour, emptied)
				p.write(test.cut, whole)
				p.expect(6*time.Second, "two")
				p.write(test.cut, begin+test.none)
				p.expect(6*time.Second, twoIsGone) // seen at 3s, still at 5s
				p.expect(6*time.Second, "two")     // takes effect
				p.write(test.cut, begin)
				p.expect(6*time.Second, "two") // it has no rules to lose
			})
		})
	}
}

// Each domain has its own time. A domain that vanishes later does not end with the first.
func TestDomainsThatVanishOneAfterTheOther(t *testing.T) {
	poll(t, map[string]string{"ratelimit.yaml": "domains: [{domain: one}, {domain: two}, {domain: three}]\n"}, func(p *polled) {
		p.write("ratelimit.yaml", "domains: [{domain: one}, {domain: three}]\n")
		p.expect(5500*time.Millisecond, twoIsGone) // at 5s
		p.write("ratelimit.yaml", "domains: [{domain: one}]\n")
		p.expect(3*time.Second, strings.ReplaceAll(twoIsGone, "domain two", "domain three, two")) // at 8s
		p.expect(4 * time.Second)                                                                 // 12.5s: domain two has been missing for 7.5s
		p.expect(2*time.Second, "one")
	})
}

func TestAskedForIsReadAtOnce(t *testing.T) {
	poll(t, map[string]string{"ratelimit.yaml": twoDomains}, func(p *polled) {
		p.ask <- struct{}{}
		p.expect(0, "one two") // nothing has changed
		p.write("ratelimit.yaml", twoDomains+"- domain: three\n")
		p.ask <- struct{}{}
		p.expect(0, "one two three")
		p.write("ratelimit.yaml", "")
		p.ask <- struct{}{}
		p.expect(0, noDomain)
		p.write("ratelimit.yaml", "domains: [{domain: one}, {domain: three}]\n")
		p.ask <- struct{}{}
		p.expect(0, twoIsGone)
		p.ask <- struct{}{}
		p.expect(4900*time.Millisecond, twoIsGone)
		p.expect(200*time.Millisecond, "one three")
	})
}

// A file that must not be read is an error at every place, and delays nothing.
func TestIrregularFiles(t *testing.T) {
	makers := map[string]func(name string) error{
		"is no regular file: it is a pipe":      func(name string) error { return syscall.Mkfifo(name, 0o600) },
		"is no regular file: it is a directory": func(name string) error { return os.Mkdir(name, 0o700) },
		"is no regular file: it is a device":    func(name string) error { return os.Symlink("/dev/zero", name) },
		errTooLarge.Error(): func(name string) error {
			return errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, 1<<30))
		},
	}
	for want, create := range makers {
		for name, at := range map[string]string{
			"ratelimit.yaml": "ratelimit.yaml: ", "rules.d/a.yaml": "ratelimit.yaml:1: include[0].path: rules.d/a.yaml ", "key": "ratelimit.yaml:2: reservation.keys[0]: the key file ",
		} {
			want := want
			if name == "key" {
				want = strings.Replace(want, errTooLarge.Error(), ErrFileTooLarge.Error(), 1)
			}
			if name == "rules.d/a.yaml" && strings.Contains(want, "directory") {
				continue // a pattern leaves directories out
			}
			files := map[string]string{
				"ratelimit.yaml": "include: [{path: 'rules.d/*.yaml'}]\nreservation: {keys: [{file: key}]}\n",
				"rules.d/a.yaml": "domain: one\n", "key": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
			}
			t.Run(name+" "+want, func(t *testing.T) {
				poll(t, files, func(p *polled) {
					p.remove(name)
					path := filepath.Join(p.dir, name)
					if err := create(path); err != nil {
						t.Fatal(err)
					}
					p.expect(8*time.Second, at+want)
					if _, err := Load(filepath.Join(p.dir, "ratelimit.yaml"), Options{}); err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("Load: %v", err)
					}
				})
			})
		}
	}
}

// The files of a configuration have a bound on their size together, and one on their number.
func TestFilesAreBoundedTogether(t *testing.T) {
	dir := t.TempDir()
	main := filepath.Join(dir, "ratelimit.yaml")
	p := &polled{t: t, dir: dir}
	p.write("ratelimit.yaml", "include: [{path: rules.d}]\n")
	part := "# " + strings.Repeat("x", maxBytes/3)
	for _, name := range []string{"a", "b", "c"} {
		p.write("rules.d/"+name+".yaml", "domain: "+name+"\n"+part)
	}
	want := main + ":1: include[0].path: " + dir + "/rules.d/c.yaml " + errTooLarge.Error()
	if _, err := Load(main, Options{}); err == nil || err.Error() != want {
		t.Errorf("three files of a third and more: got %.300v, want %s", err, want)
	}

	many := &files{reader: newReader(HostFS{}), seen: map[string]bool{}}
	many.dirs = slices.Repeat([]string{dir}, maxFiles)
	many.directory(include{}, dir, nil)
	many.read(main, include{})
	if len(many.sources) != 1 || !errors.Is(many.sources[0].err, errTooMany) {
		t.Errorf("one file too many: got %v", many.sources)
	}
}

// vanishing is the file system of the machine. While gone is set, a file vanishes after it was
// found and before it is read.
type vanishing struct {
	HostFS

	name string
	gone *atomic.Bool
}

func (v vanishing) Open(name string) (fs.File, error) {
	if name == v.name && v.gone.Load() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return v.HostFS.Open(name)
}

// TestVanishingFile loses an included file in the middle of a reload. This is an error, and no
// configuration without the file's domain.
func TestVanishingFile(t *testing.T) {
	p := &polled{t: t, dir: t.TempDir()}
	p.write("ratelimit.yaml", "include: [{path: 'rules*.yaml'}]\n")
	p.write("rules.yaml", "domain: api\n")
	var gone atomic.Bool
	w := newWatcher(filepath.Join(p.dir, "ratelimit.yaml"), Options{}, p.deliver)
	w.fsys = vanishing{name: filepath.Join(p.dir, "rules.yaml"), gone: &gone}
	now := time.Unix(1_000_000, 0)
	w.load(now, false)
	gone.Store(true)
	for range 4 { // it must be missing for 2s, and is reported once
		w.reload(now)
		now = now.Add(time.Second)
	}
	gone.Store(false)
	w.reload(now)
	want := []string{"ratelimit.yaml:1: include[0].path: rules.yaml does not exist", "api"}
	if diff := cmp.Diff(want[:1], p.got); diff != "" {
		t.Errorf("delivered at first (-want +got):\n%s", diff)
	}
	w.reload(now.Add(2 * time.Second))
	if diff := cmp.Diff(want, p.got); diff != "" {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
}
