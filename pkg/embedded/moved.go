package embedded

import "sync"

// maxMoved bounds the rows that are recorded for the next comparison. Beyond it all rows of the
// windows are compared.
const maxMoved = 100_000

// moved is the rows of usage that were written since the last comparison with budgets.
type moved struct {
	mu   sync.Mutex
	set  *inForce // whose limits' rows are recorded; nil = none
	rows map[usageRow]bool
	all  bool // there were too many
}

// note records rows that were written.
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

// take returns the recorded rows, and starts over for the limits of a set. all reports that rows
// are missing.
func (m *moved) take(set *inForce) (rows map[usageRow]bool, all bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rows, all = m.rows, m.all || m.set != set
	m.set, m.rows, m.all = set, make(map[usageRow]bool), false
	return rows, all
}

// again makes the next comparison read all rows.
func (m *moved) again() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = true
}
