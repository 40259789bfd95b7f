package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal returns the two ends of a terminal of 20 columns and 3 lines.
func terminal(t *testing.T) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = user.Close() })
	n, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(user.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 3, Col: 20})
	}
	if err == nil {
		program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return user, program
}

// await reads from a terminal until the text has come, and returns all.
func await(t *testing.T, user *os.File, text string) string {
	t.Helper()
	var all strings.Builder
	b := make([]byte, 1024)
	for !strings.Contains(all.String(), text) {
		n, err := user.Read(b)
		if err != nil {
			t.Fatalf("%v after %q", err, all.String())
		}
		all.Write(b[:n])
	}
	return all.String()
}

func TestKeysEndIt(t *testing.T) {
	for _, key := range []string{"q", "Q", "x\x03", "\x04"} {
		user, program := terminal(t)
		s := liveScreen{In: program, Out: program, Every: time.Millisecond}
		if !s.IsTerminal() {
			t.Fatal("no terminal")
		}
		ended := make(chan error, 1)
		texts := 0
		go func() {
			ended <- s.Run(t.Context(), func(context.Context) (string, error) {
				texts++
				return fmt.Sprintf("text %d\nwider than the terminal\nthird\nfourth\n", texts), nil
			})
		}()
		shown := await(t, user, "text 3")
		for _, want := range []string{"\x1b[?1049h", "text 1\x1b[K\r\nwider than the term\x1b[K\r\nthird\x1b[K\x1b[J"} {
			want = strings.ReplaceAll(want, "term\x1b", "termi\x1b")
			if !strings.Contains(shown, want) {
				t.Errorf("got %q, want %q in it", shown, want)
			}
		}
		if _, err := user.WriteString(key); err != nil {
			t.Fatal(err)
		}
		await(t, user, "\x1b[?1049l")
		if err := <-ended; err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func TestContextEndsIt(t *testing.T) {
	user, program := terminal(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := liveScreen{In: program, Out: program, Every: time.Hour}
	ended := make(chan error, 1)
	go func() {
		ended <- s.Run(ctx, func(context.Context) (string, error) { return "text", nil })
	}()
	await(t, user, "text")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestErrorEndsIt(t *testing.T) {
	_, program := terminal(t)
	s := liveScreen{In: program, Out: program, Every: time.Hour}
	gone := errors.New("gone")
	if err := s.Run(t.Context(), func(context.Context) (string, error) { return "", gone }); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestFilesAreNoTerminals(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	s := liveScreen{In: f, Out: f}
	if s.IsTerminal() {
		t.Error("the null device is no terminal")
	}
	if err := s.Run(t.Context(), func(context.Context) (string, error) { return "", nil }); err == nil {
		t.Error("no error")
	}
}
