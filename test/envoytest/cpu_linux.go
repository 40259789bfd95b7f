package envoytest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// CPUTime returns the time that processors have spent on Envoy, in whole hundredths of a second.
func (e *Envoy) CPUTime(tb testing.TB) time.Duration {
	tb.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", e.process.cmd.Process.Pid))
	if err != nil {
		tb.Fatal(err)
	}
	// The name of the program is in brackets, and may have spaces. The 14th and the 15th field are
	// those of the user and of the system; the first behind the name is the third.
	_, rest, _ := cutLast(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		tb.Fatalf("/proc/%d/stat: got %q", e.process.cmd.Process.Pid, stat)
	}
	var sum time.Duration
	for _, field := range fields[11:13] {
		ticks, err := strconv.Atoi(field)
		if err != nil {
			tb.Fatal(err)
		}
		sum += time.Duration(ticks) * (time.Second / 100)
	}
	return sum
}
