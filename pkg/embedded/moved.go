package embedded

import "sync"

// maxMoved bounds the rows that are remembered for the next comparison. Beyond it all rows of
// the windows are compared.
const maxMoved = 100_000

// moved are rows of usage that were written since usage was compared with budgets the last time.
type moved struct {
	mu   sync.Mutex
	set  *inForce // of whose limits rows are remembered; nil = none
	rows map[usageRow]bool
	all  bool // there were too many
}

// note remembers rows that were written.
func (m *moved) note(rows []usageRow) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range rows {
		if !m.set.has(r.limit) {
			continue
		}
		if len(m.rows) >= maxMoved {
			m.all = true
			return
		}
		r.amount = 0
		m.rows[r] = true
	}
}

// take returns what was noted, and begins anew for the limits of a set. all says that rows are missing.
func (m *moved) take(set *inForce) (rows map[usageRow]bool, all bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rows, all = m.rows, m.all || m.set != set
	m.set, m.rows, m.all = set, make(map[usageRow]bool), false
	return rows, all
}

// again has the next comparison see all rows.
func (m *moved) again() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = true
}
