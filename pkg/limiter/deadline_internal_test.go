package limiter

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// The context of a decision ends as one with a timeout does, whether or not anything waits for it before.
func TestADeadlineIsATimeout(t *testing.T) {
	type key struct{}
	for name, tt := range map[string]struct {
		timeout time.Duration // of the caller; 0 = none
		leaves  bool          // the caller, after a second
		ends    bool          // the decision, after a second
		after   time.Duration // the end
		want    error
	}{
		"at its time":           {after: 2 * time.Second, want: context.DeadlineExceeded},
		"at that of its caller": {timeout: time.Second, after: time.Second, want: context.DeadlineExceeded},
		"with its caller":       {leaves: true, after: time.Second, want: context.Canceled},
		"with the decision":     {ends: true, after: time.Second, want: context.Canceled},
	} {
		for _, waits := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				caller, leave := context.WithCancel(context.WithValue(t.Context(), key{}, name))
				defer leave()
				if tt.timeout > 0 {
					timed, cancel := context.WithTimeout(caller, tt.timeout)
					defer cancel()
					caller = timed
				}
				d := within(caller, 2*time.Second)
				defer d.end()
				child := context.Context(d)
				if waits {
					made, cancel := context.WithCancel(d)
					defer cancel()
					child = made
				}
				if at, ok := d.Deadline(); !ok || errors.Is(tt.want, context.DeadlineExceeded) && time.Until(at) != tt.after {
					t.Errorf("%s: its deadline is in %v, want %v", name, time.Until(at), tt.after)
				}
				time.Sleep(tt.after - time.Millisecond)
				synctest.Wait()
				if err := errors.Join(d.Err(), child.Err()); err != nil || d.Value(key{}) != name {
					t.Errorf("%s: %v before its end, and the value %v", name, err, d.Value(key{}))
				}
				time.Sleep(time.Millisecond)
				if tt.leaves {
					leave()
				}
				if tt.ends {
					d.end()
				}
				synctest.Wait()
				if got := d.Err(); !errors.Is(got, tt.want) {
					t.Errorf("%s, waits %t: got %v, want %v", name, waits, got, tt.want)
				}
				<-d.Done()
				if got := child.Err(); !errors.Is(got, tt.want) || !errors.Is(d.Err(), tt.want) {
					t.Errorf("%s, waits %t: got %v and %v once it is done, want %v", name, waits, got, d.Err(), tt.want)
				}
			})
		}
	}
}
