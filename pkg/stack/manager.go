package stack

import (
	"cmp"
	"context"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
)

// Config configures a [Manager].
type Config struct {
	API     API
	Table   dynamo.Client    // in the same region and account
	Version string           // of the program, for the stack's tags; at most 256 characters
	Now     func() time.Time // nil = time.Now
	// Interval is between two reads of a stack that changes; 0 = 2 s.
	Interval time.Duration
	// Progress is called for each event of a stack that changes; nil = not called.
	Progress func(Event)
}

// Manager creates, changes and deletes stacks. It is safe for concurrent use if
// [Config.Progress] is.
type Manager struct{ cfg Config }

// NewManager returns a manager.
func NewManager(cfg Config) *Manager {
	cfg.Interval = cmp.Or(cfg.Interval, 2*time.Second)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Manager{cfg}
}

// pause waits for the interval, or until ctx ends.
func (m *Manager) pause(ctx context.Context) error {
	select {
	case <-time.After(m.cfg.Interval):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Event is one of a stack that changes.
type Event struct {
	Time     time.Time
	Resource string // logical name; the stack's own name for the stack
	Kind     string // such as AWS::DynamoDB::Table
	Status   string // such as CREATE_IN_PROGRESS
	Reason   string // "" = none is given
}
