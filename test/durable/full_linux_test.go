package durable_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// limitFiles sets how large a file the process may write.
func limitFiles(t *testing.T, p *program, size uint64) {
	t.Helper()
	limit := syscall.Rlimit{Cur: size, Max: syscall.RLIM_INFINITY & (1<<64 - 1)}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(p.cmd.Process.Pid), syscall.RLIMIT_FSIZE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0); errno != 0 {
		t.Fatal(errno)
	}
}

// While the disk is full, the tokens of an open block are given, and nothing more:
// calls beyond it are answered by policy, in time. With space all goes on.
func TestDiskThatIsFull(t *testing.T) {
	h := newHistory()
	dir, config := t.TempDir(), configuration(t, rules)
	p := start(t, dir, config)
	c, end := h.dial(t, p)
	defer end()
	ctx := t.Context()
	admitted := func(key, value string, hits int64) bool {
		t.Helper()
		before := len(h.given[key+"/"+value+" n"])
		began := time.Now()
		c.take(ctx, key, value, hits, map[string]int64{"n": hits})
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s/%s: the answer took %v", key, value, took)
		}
		return len(h.given[key+"/"+value+" n"]) > before
	}
	if !admitted("ledger", "l", 1000) || !admitted("hot", "h", 10) {
		t.Fatal("denied with space")
	}
	limitFiles(t, p, 8192)
	if !admitted("ledger", "l", 1) {
		t.Error("a request that the block covers was denied on a full disk")
	}
	for _, value := range []string{"u1", "u2"} {
		if admitted("small", value, 1) {
			t.Errorf("small/%s, which is not in the file, was admitted on a full disk", value)
		}
	}
	if admitted("ledger", "l", 5_000_000) {
		t.Error("more than the block was admitted on a full disk")
	}
	if n := p.metric(t, "ratelimit_store_commit_errors_total"); n == 0 {
		t.Error("no failed commits in the metrics")
	}
	if e, ok := p.said("the data file cannot be written: requests beyond open blocks fail"); !ok || e.Level != "ERROR" || e.Error == "" {
		t.Errorf("the log has %+v, want the error\n%s", e, p.wrote())
	}
	limitFiles(t, p, 1<<40)
	if !admitted("ledger", "l", 1_000_000) || !admitted("small", "u1", 1) {
		t.Error("denied, with space again")
	}
	p.stop(t)
	p = start(t, dir, config)
	want := float64(10_000_000 - h.spent())
	if got := p.balance(t, "ledger", "l", "n"); got < want || got > want+0.01 {
		t.Errorf("in the end: got %v left, want %v", got, want)
	}
}

// A stop on a disk that is full writes the exact balances in the space that there is: no block is lost.
func TestStopOnADiskThatIsFull(t *testing.T) {
	dir, config := t.TempDir(), configuration(t, fmt.Sprintf(manyRules, hung(t)))
	p := start(t, dir, config)
	c, end := newHistory().dial(t, p)
	const keys = 10_000
	c.useOnce(t, "slow", keys)
	end()
	info, err := os.Stat(filepath.Join(dir, "ratelimit.db"))
	if err != nil {
		t.Fatal(err)
	}
	limitFiles(t, p, uint64(info.Size()))
	p.stop(t)
	if strings.Contains(p.wrote(), `"level":"ERROR"`) {
		t.Errorf("the stop:\n%s", p.wrote())
	}
	p = start(t, dir, config)
	if e, crashed := p.said(notInOrder); crashed {
		t.Errorf("the life before did not end in order: %+v", e)
	}
	for i := range 20 {
		if got := p.balance(t, "slow", fmt.Sprint("k", i), "n"); got < 9 || got > 9.1 {
			t.Errorf("key %d: %v left, want 9", i, got)
		}
	}
}
