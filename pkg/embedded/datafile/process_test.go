package datafile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestMain also runs the other processes of these tests, by name.
func TestMain(m *testing.M) {
	programs := map[string]func(dir string) error{
		"hold": hold, "create": create, "compact": compactForever, "unprivileged": openUnprivileged, "limited": fillUp,
	}
	program, ok := programs[os.Getenv("DATAFILE_PROGRAM")]
	if !ok {
		os.Exit(m.Run())
	}
	dir, err := os.Getwd()
	if err == nil {
		err = program(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// start runs a program of TestMain in a directory, and returns the lines that it prints.
func start(t *testing.T, program, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "DATAFILE_PROGRAM="+program)
	cmd.Dir = dir
	cmd.Stderr = t.Output()
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the error is the kill
}

// hold has a directory open until it is killed.
func hold(dir string) error {
	f, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	if err := f.Update(func(tx *Tx) error { return tx.Put(Meta, []byte("by"), []byte("first")) }); err != nil {
		return err
	}
	fmt.Println("open")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func TestOneProcessAtATime(t *testing.T) {
	dir := t.TempDir()
	first, lines := start(t, "hold", dir)
	if !lines.Scan() {
		t.Fatal("the first process did not open the directory")
	}
	_, openErr := Open(dir, Options{})
	_, lookErr := Open(dir, Options{ReadOnly: true})
	_, verifyErr := Verify(filepath.Join(dir, fileName))
	restoreErr := Restore(dir, strings.NewReader(""))
	for name, err := range map[string]error{"Open": openErr, "Open read-only": lookErr, "Verify": verifyErr, "Restore": restoreErr} {
		var inUse *InUseError
		if !errors.As(err, &inUse) || inUse.PID != first.Process.Pid || inUse.Dir != dir {
			t.Errorf("%s while process %d has it open: %v", name, first.Process.Pid, err)
		} else if want := fmt.Sprintf("is open in process %d; one process at a time", inUse.PID); !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q does not say %q", name, err, want)
		}
	}

	kill(t, first)
	f := open(t, dir)
	if got := mustDump(t, f)["meta/by"]; got != "first" {
		t.Errorf("after the first process was killed: %q, want its records", got)
	}
	if text, err := os.ReadFile(filepath.Join(dir, pidName)); err != nil || strings.TrimSpace(string(text)) != strconv.Itoa(os.Getpid()) {
		t.Errorf("process id after that: %q, %v, want %d", text, err, os.Getpid())
	}
}

// A process keeps its directory when the file is removed under it: a restore would be lost for the process.
func TestRestoreUnderAProcessWithoutItsFile(t *testing.T) {
	from := open(t, t.TempDir())
	put(t, from, Records, "k", "backup")
	good := backup(t, from)
	dir := t.TempDir()
	first, lines := start(t, "hold", dir)
	if !lines.Scan() {
		t.Fatal("the first process did not open the directory")
	}
	for _, names := range [][]string{{fileName}, {markerName, pidName}} {
		for _, name := range names {
			remove(t, dir, name)
		}
		if err := Restore(dir, bytes.NewReader(good)); !errors.As(err, new(*InUseError)) {
			t.Errorf("without %v: %v, want an *InUseError", names, err)
		}
		if _, err := os.Lstat(filepath.Join(dir, fileName)); err == nil {
			t.Errorf("without %v: a file is in its place", names)
		}
	}
	kill(t, first)
	if err := Restore(dir, bytes.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	if got := mustDump(t, open(t, dir))["records/k"]; got != "backup" {
		t.Errorf("after the process has ended: %q, want the backup", got)
	}
}

// Only the lock decides. The file with the process id is for messages only.
func TestProcessIDThatCannotBeKnown(t *testing.T) {
	for _, text := range []string{"", "me", "-1", "999999999"} {
		dir := t.TempDir()
		path := filepath.Join(dir, pidName)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		open(t, dir)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(dir, Options{})
		var inUse *InUseError
		if !errors.As(err, &inUse) || inUse.PID != 0 || !strings.Contains(err.Error(), "is open in another process") {
			t.Errorf("%q for a process id: %v, want an *InUseError without", text, err)
		}
	}
}

func TestLookingTogether(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	put(t, f, Meta, "k", "v")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		look, err := Open(dir, Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer look.Close() //nolint:errcheck // only read
		if got := mustDump(t, look)["meta/k"]; got != "v" {
			t.Errorf("looking: %q, want v", got)
		}
		if err := look.Update(func(*Tx) error { return nil }); !errors.Is(err, ErrReadOnly) {
			t.Errorf("Update: %v, want ErrReadOnly", err)
		}
		if err := look.Compact(nil); !errors.Is(err, ErrReadOnly) {
			t.Errorf("Compact: %v, want ErrReadOnly", err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 { // the file and the marker
		t.Errorf("looking left %v in the directory, want the file and its marker: %v", entries, err)
	}
}

// compactForever counts in the file, and prints each number when it is on disk.
func compactForever(dir string) error {
	f, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for n := uint64(0); ; n++ {
		err := f.Update(func(tx *Tx) error {
			for i := range 300 {
				if err := tx.Put(Buckets, fmt.Appendf(nil, "%d", i), make([]byte, 100)); err != nil {
					return err
				}
			}
			if got := tx.Get(Meta, []byte("n")); got != nil {
				last, err := strconv.ParseUint(string(got), 10, 64)
				if err != nil {
					return err
				}
				n = max(n, last+1)
			}
			return tx.Put(Meta, []byte("n"), strconv.AppendUint(nil, n, 10))
		})
		if err := errors.Join(err, out.Encode(n)); err != nil {
			return err
		}
		if err := f.Compact(nil); err != nil {
			return err
		}
	}
}

func TestKillWhileCompacting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := random(t)
	var left int
	for range 25 {
		cmd, lines := start(t, "compact", dir)
		var said string
		for range 1 + r.IntN(6) {
			if !lines.Scan() {
				t.Fatal("the process ended by itself")
			}
			said = lines.Text()
		}
		for range r.IntN(3000) { // anywhere in the next steps
			_ = os.Getppid()
		}
		kill(t, cmd)
		if _, err := os.Stat(filepath.Join(dir, newName)); err == nil {
			left++
		}
		f := open(t, dir)
		got := mustDump(t, f)
		want, err := strconv.Atoi(said)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := strconv.Atoi(got["meta/n"]); err != nil || n < want || len(got) != 301 {
			t.Fatalf("after %d was on disk: %d records and n = %q", want, len(got), got["meta/n"])
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("killed 25 times, with a file in the making left %d times", left)
}

type unprivileged struct {
	Open       string `json:"open"`
	Look       string `json:"look"`
	ReadOnly   bool   `json:"read_only"`
	Permission bool   `json:"permission"`
}

// openUnprivileged opens a directory as a user without the right to write it, and prints the error.
func openUnprivileged(dir string) error {
	if os.Geteuid() == 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(65534), syscall.Setuid(65534)); err != nil {
			return err
		}
	}
	_, err := Open(dir, Options{})
	_, lookErr := Open(dir, Options{ReadOnly: true})
	return json.NewEncoder(os.Stdout).Encode(unprivileged{
		Open: fmt.Sprint(err), Look: fmt.Sprint(lookErr),
		ReadOnly: errors.Is(err, ErrReadOnly), Permission: errors.Is(err, os.ErrPermission),
	})
}

func TestWithoutRightsToWrite(t *testing.T) {
	made := t.TempDir()
	if err := open(t, made).Close(); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	for path, mode := range map[string]os.FileMode{
		filepath.Dir(empty): 0o755, empty: 0o555, made: 0o555, filepath.Join(made, fileName): 0o444,
	} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(path, 0o755) }) // so that it can be removed
	}
	for _, test := range []struct{ dir, path, look string }{
		{empty, filepath.Join(empty, newName), "no such file"},
		{made, filepath.Join(made, fileName), "<nil>"},
	} {
		cmd, lines := start(t, "unprivileged", test.dir)
		var got unprivileged
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &got) != nil {
			t.Fatalf("%q is no answer", lines.Text())
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		if !got.ReadOnly || !got.Permission || !strings.HasPrefix(got.Open, test.path+" cannot be written by user") {
			t.Errorf("Open: %+v, want ErrReadOnly and a permission error about %s", got, test.path)
		}
		if !strings.Contains(got.Look, test.look) {
			t.Errorf("Open read-only: %s, want %s", got.Look, test.look)
		}
	}
}

func TestDirectories(t *testing.T) {
	tmp := t.TempDir()
	file := filepath.Join(tmp, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		dir  string
		err  error
		says string
	}{
		{file, syscall.ENOTDIR, file + " is a file; a data directory is needed"},
		{filepath.Join(file, "below"), syscall.ENOTDIR, "not a directory"},
		{filepath.Join(tmp, "no", "dir"), os.ErrNotExist, "its parent " + filepath.Join(tmp, "no") + " is missing"},
	} {
		_, err := Open(test.dir, Options{})
		if !errors.Is(err, test.err) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("Open(%s): %v, want %v and %q", test.dir, err, test.err, test.says)
		}
	}
	if _, err := Open(tmp, Options{ReadOnly: true}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("looking at nothing: %v, want fs.ErrNotExist", err)
	}
	made := filepath.Join(tmp, "made")
	open(t, made)
	for path, want := range map[string]os.FileMode{made: 0o700, filepath.Join(made, fileName): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, info, err, want)
		}
	}
}

type filled struct {
	Text     string `json:"text"`
	Full     bool   `json:"full"`
	Cause    bool   `json:"cause"`
	Complete bool   `json:"complete"` // all records from before
	Retry    bool   `json:"retry"`    // a change when there is space again
}

// fillUp makes changes until the limit of the file's size ends them, twice: when the file must
// grow, and when a page must be written.
func fillUp(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	f, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	f.current.Load().db.AllocSize = 8 * pageSize
	out := json.NewEncoder(os.Stdout)
	for _, size := range []int64{1 << 20, 1 << 17} {
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		low := limit
		low.Cur = uint64(size)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &low); err != nil {
			return err
		}
		n, failure := fillUntil(f, int(size))
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		after, dumpErr := dump(f)
		retry := f.Update(func(tx *Tx) error { return tx.Put(Meta, []byte("retry"), make([]byte, 100_000)) })
		if err := out.Encode(filled{
			Text: failure.Error(), Full: errors.Is(failure, ErrFull), Cause: errors.Is(failure, syscall.EFBIG),
			Complete: len(after) == n && dumpErr == nil, Retry: retry == nil,
		}); err != nil {
			return err
		}
		empty := func(tx *Tx) error {
			for key := range after {
				table, k, _ := strings.Cut(key, "/")
				if err := tx.Delete(Table(table), []byte(k)); err != nil {
					return err
				}
			}
			return tx.Delete(Meta, []byte("retry"))
		}
		if err := f.Update(empty); err != nil {
			return err
		}
	}
	return f.Close()
}

// fillUntil returns the number of records that were written.
func fillUntil(f *File, seed int) (int, error) {
	for n := 0; ; n++ {
		err := f.Update(func(tx *Tx) error {
			return tx.Put(Usage, fmt.Appendf(nil, "%d/%d", seed, n), make([]byte, 50_000))
		})
		if err != nil {
			return n, err
		}
	}
}

func TestADiskThatIsFull(t *testing.T) {
	dir := t.TempDir()
	cmd, lines := start(t, "limited", dir)
	for _, name := range []string{"growing", "writing"} {
		var got filled
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &got) != nil {
			t.Fatalf("%s: %q is no answer", name, lines.Text())
		}
		if !got.Full || !got.Cause || !got.Complete || !got.Retry {
			t.Errorf("%s: %+v, want all true", name, got)
		}
		t.Logf("%s: %s", name, got.Text)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := mustDump(t, open(t, dir)); len(got) != 0 {
		t.Errorf("%d records after all were deleted", len(got))
	}
}
