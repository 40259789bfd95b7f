package lane

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// TaskKind is a kind of maintenance task: something that a lane does for its item, and no
// request waits for.
type TaskKind uint8

// The maintenance tasks.
const (
	Look   TaskKind = iota // the item is read, to see how it is used
	Retire                 // the shard is merged into its heir
	absorb                 // the other half of the last split is taken in
)

// task is a maintenance task of a lane.
type task struct {
	TaskKind
	index int            // absorb: the shard that is gone
	found *schema.Bucket // absorb: as it was retired; nil = it is to be read
	gone  bool           // absorb: there is no item of it
	tries int
}

const (
	// taskTries is how often a task is tried that other writes get in the way of.
	taskTries = 5
	// taskRest is how long a lane leaves tasks alone after one failed.
	taskRest = time.Second
	// makeView is how old a state may be that another shard is made from: far younger
	// than a retired one stays, which shows that it was made before.
	makeView = time.Hour
)

// tasks are the maintenance tasks of a lane.
type tasks struct {
	todo   []task
	rest   time.Time // nothing is done before
	looked time.Time // the item is not read for them before
	made   int64     // the epoch of the last half that is there; 0 = none is known
	load   Load
}
