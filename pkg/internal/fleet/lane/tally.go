package lane

import "sync"

// tally counts pieces of work. Unlike a sync.WaitGroup it may be added to while it is
// waited for. It is safe for concurrent use.
type tally struct {
	mu    sync.Mutex
	n     int
	empty chan struct{} // closed at 0; nil = without a waiter
}

func (t *tally) add() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
}

func (t *tally) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n--; t.n == 0 && t.empty != nil {
		close(t.empty)
		t.empty = nil
	}
}

// wait returns when the count was 0.
func (t *tally) wait() {
	t.mu.Lock()
	if t.n == 0 {
		t.mu.Unlock()
		return
	}
	if t.empty == nil {
		t.empty = make(chan struct{})
	}
	empty := t.empty
	t.mu.Unlock()
	<-empty
}
