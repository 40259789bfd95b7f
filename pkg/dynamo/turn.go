package dynamo

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

// races is how a lane fares against others that refill the same bucket: of all that
// saw the same rf one is first, and each of the others pays for a write that is
// refused. Where the others never pause, one that is farther from DynamoDB, or whose
// clock is ahead so that its requests always need a refill, would lose for ever. So
// who has lost more than once in a row, not just seen an old state, waits for a part of
// a round trip or two by chance, so that those who lost do not all meet again, and
// then asks for a turn: by a write that rests only on the shard's epoch, and leaves an id. A replica
// that sees the id lets a write pass before the next of its own, once for each id.
type races struct {
	lost   int           // in a row
	took   time.Duration // the last write
	asked  int           // how many were lost when it last asked for a turn
	passed string        // the last id that it has let pass
}

const (
	// maxPause is how many round trips the wait is at most. More would save more writes,
	// and have more callers wait past their deadline.
	maxPause = 2
	// longestPass is how long others are let pass at most.
	longestPass = 20 * time.Millisecond
)

func (r *races) note(took time.Duration, lost bool) {
	if r.took = took; lost {
		r.lost++
	} else {
		r.lost, r.asked = 0, 0
	}
}

// due reports whether it is time to ask for a turn: after two lost races, and two more.
func (r *races) due() bool { return r.lost >= r.asked+2 }

// wait waits before a turn is asked for, at most until ctx is done.
func (r *races) wait(ctx context.Context, by awsdb.Loop) {
	if most := r.took * time.Duration(min(r.lost-1, maxPause)); most > 0 && r.due() {
		_ = by.Sleep(ctx, time.Duration(by.Draw(int64(most)))) // cut short when the store ends
	}
}

// letPass waits for as long as a write takes, and a half more, when another process
// has asked for a turn.
func (s *Store) letPass(l *lane) {
	r, v := &l.races, l.knows.view
	if v == nil || v.turn == r.passed {
		return
	}
	if r.passed = v.turn; r.lost < 2 && !s.wrote(v.turn) {
		_ = s.loop.Sleep(s.stopped, min(r.took*3/2, longestPass)) // cut short when the store ends
	}
}

// askTurn asks for a turn when it is time, and reports whether it did. The reply is also
// the newest state; without one the next write rests on the last.
func (s *Store) askTurn(l *lane) bool {
	v := l.knows.view
	if !l.knows.known || v == nil || !l.races.due() {
		return false
	}
	l.races.asked = l.races.lost
	ctx, cancel := s.loop.Within(s.stopped, s.cfg.Attempt)
	defer cancel()
	out, err := s.client.UpdateItem(ctx, turnInput(s.cfg.Table, l.key, s.nextID(v), v, s.cost(l)))
	s.stats.wrote(err)
	item, refused := awsdb.ConditionItem(err)
	switch {
	case err == nil:
		l.owed, item = 0, out.Attributes
	case refused:
		s.stats.refused.Add(1)
		l.owed += l.units()
	default:
		return true
	}
	if image, err := s.parse(l, item); err == nil {
		s.saw(l, image)
	}
	return true
}

// turnInput asks for a turn on an item.
func turnInput(table string, k schema.Key, id writeID, v *view, units int64) *dynamodb.UpdateItemInput {
	e := &expression{schema.NewExpression()}
	e.Require(schema.AttrEpoch, "=", schema.NumberAttribute(v.shard.Epoch))
	e.Set(schema.AttrTurn, &types.AttributeValueMemberS{Value: id.id})
	e.Add(schema.AttrUnits, units)
	return e.Input(table, k)
}
