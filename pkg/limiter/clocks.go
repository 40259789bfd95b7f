package limiter

import "time"

// Clocks are the clocks of one process. Create them with [NewClocks]. They are safe for
// concurrent use.
type Clocks struct {
	machine func() time.Time
	start   time.Time
}

// NewClocks returns the clocks of a process that reads its machine's clock with machine,
// nil = time.Now.
func NewClocks(machine func() time.Time) *Clocks {
	if machine == nil {
		machine = time.Now
	}
	return &Clocks{machine: machine, start: machine()}
}

// Call is the clock that calls are decided by. It starts with the time of day and
// then runs by the monotonic clock. Setting the machine's time back would otherwise
// stop every refill until the old time comes again, and setting it ahead would fill
// every bucket.
func (c *Clocks) Call() time.Time { return c.start.Add(c.machine().Sub(c.start)) }

// Store is the clock of a store on a table: the machine's, with both readings as they
// are. The monotonic clock stands still while a machine sleeps. Only the wall clock
// then shows that others have freed a lease.
func (c *Clocks) Store() time.Time { return c.machine() }
