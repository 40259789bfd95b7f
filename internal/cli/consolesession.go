package cli

import (
	"crypto/rand"
	"crypto/subtle"
	"sync"
	"time"
)

// consoleLoginTime is how long a browser can log in, from the start of the proxy.
const consoleLoginTime = time.Minute

// consoleSession is the one login of a proxy. It ends with the proxy. It is safe for concurrent use.
type consoleSession struct {
	now   func() time.Time
	token string
	until time.Time // the end of the time to log in

	mu    sync.Mutex
	value string // of the cookie; "" = there was no login yet
}

func newConsoleSession(now func() time.Time) *consoleSession {
	return &consoleSession{now: now, token: rand.Text(), until: now().Add(consoleLoginTime)}
}

// open returns the value of the cookie for the token, once.
func (s *consoleSession) open(token string) (value string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !equal(token, s.token) || s.value != "" || !s.now().Before(s.until) {
		return "", false
	}
	s.value = rand.Text()
	return s.value, true
}

// has reports whether a value is that of the cookie.
func (s *consoleSession) has(value string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.value != "" && equal(value, s.value)
}

// equal compares in a time that does not depend on the result.
func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
