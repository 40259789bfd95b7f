package dynamo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// lane is the way of all requests of this process for one bucket. One goroutine
// runs it while there are any; it has at most one message under way, and what
// arrives meanwhile goes into the next.
type lane struct {
	key  schema.Key
	site site
	home *laneShard

	// The running goroutine's:

	knows  knowledge
	load   load
	owed   int64 // write units of refused writes that the item has not counted
	todo   []chore
	tended bool      // the last thing it did was a chore
	rest   time.Time // no chores before
	seen   time.Time // when the view came
	era    uint64    // of the store, then
	races  races

	sightings []sighting // leases of others
	helpless  bool       // what the lease has left did not help
	probe     probe

	// Guarded by the lock of the lane's shard:

	queue   []*request
	chores  []chore
	holder  holder
	running bool
	used    time.Time // when it last stopped running
}

// run serves a lane until nothing waits.
func (s *Store) run(l *lane) {
	defer s.work.Done()
	var pending []*request
	for {
		s.consult(l)
		pending = s.answer(l, pending)
		s.letPass(l)
		if len(pending) > 0 {
			l.races.wait(s.stopped, s.loop)
		}
		s.lanes.gather(l, s.loop)
		arrived, stopped := s.lanes.next(l, len(pending) == 0, s.cfg.Now)
		if stopped {
			return
		}
		pending = s.step(l, append(pending, arrived...))
	}
}

// answer decides what can be decided by what is known, and returns the rest.
func (l *lane) answer(pending []*request) []*request {
	answered, left := l.knows.answer(pending)
	for _, r := range answered {
		r.done(nil)
	}
	return left
}

// step sends what it takes to decide more, and returns the requests that still wait.
func (s *Store) step(l *lane, pending []*request) []*request {
	if l.knows.elsewhere() {
		s.forward(l, pending)
		return nil
	}
	if s.tend(l) {
		return pending
	}
	if s.askTurn(l) {
		return pending
	}
	s.consult(l)
	s.settleDoubt(l)
	pending = s.withhold(l, s.serveSome(l, s.current(pending)))
	s.ask(l, pending)
	p := l.knows.plan(pending)
	switch {
	case p.stage == nil && len(p.rest) == 0:
		s.drop(l)
		return nil
	case p.stage == nil:
		s.drop(l)
		return s.look(l, p.rest)
	case !claim(p.actors):
		s.drop(l)
		return append(p.actors, p.rest...) // somebody left: without them
	}
	return s.carryOut(l, &p)
}

// current drops the requests whose callers have left, and those that waited for
// too long.
func (s *Store) current(pending []*request) []*request {
	now := s.cfg.Now()
	kept := pending[:0]
	for _, r := range pending {
		switch {
		case r.state.Load() == gone:
		case now.After(r.expires):
			s.fail(r, fmt.Errorf("%w: no decision on the bucket in %v", limiter.ErrUnavailable, s.cfg.Budget))
		default:
			kept = append(kept, r)
		}
	}
	return kept
}

// claim marks the actors of a write as sent, unless the caller of one has left.
func claim(actors []*request) bool {
	for i, r := range actors {
		if !r.state.CompareAndSwap(waiting, sent) {
			for _, claimed := range actors[:i] {
				claimed.state.CompareAndSwap(sent, waiting)
			}
			return false
		}
	}
	return true
}

// done ends a request, and reports whether its caller has left: then there is no answer to give.
func (r *request) done(err error) (left bool) {
	r.err = err
	if r.state.Swap(finished) == gone {
		return true
	}
	if r.call != nil && r.call.left.Add(-1) == 0 {
		close(r.call.done)
	}
	return false
}

// applied ends a request that a write or a lease has decided. The tokens that it took are
// given back if the caller has left without being admitted.
func (s *Store) applied(r *request) {
	if r.done(nil) && !r.keep {
		s.giveBack(r)
	}
}

// fail ends a request with an error.
func (s *Store) fail(r *request, err error) {
	if r.call == nil {
		if s.postpone(r, err) {
			return
		}
		s.lost(r, err)
	}
	if r.uncertain && !errors.Is(err, limiter.ErrUncertain) {
		err = fmt.Errorf("%w: %w", limiter.ErrUncertain, err)
	}
	r.done(err)
}

// lost counts tokens that were taken for no admitted request, or may have been, and are
// not given back.
func (s *Store) lost(r *request, err error) {
	s.stats.lost.Add(1)
	amounts := make([]any, 0, len(r.spends))
	for i := range r.spends {
		if sp := &r.spends[i]; r.call == nil || sp.held && sp.take > 0 {
			amounts = append(amounts, slog.Int64(sp.limit, sp.give+sp.take))
		}
	}
	s.cfg.Logger.Warn("tokens of a request that was not admitted were not given back", slog.String("entity", r.bucket.Entity), slog.String("resource", r.bucket.Resource),
		slog.Group("millitokens", amounts...), slog.Any("error", err))
}

// mayTake counts the tokens that a write may have taken for a request, or may take yet, that is not
// decided by it.
func (s *Store) mayTake(r *request, err error) {
	if r.call != nil && r.takes() {
		s.lost(r, err)
	}
}

// consult brings what the lane knows of the clock up to date, and says so when the
// clock comes to be trusted or not.
func (s *Store) consult(l *lane) {
	if s.cfg.Clock == nil {
		return
	}
	r := s.cfg.Clock.Reading()
	l.knows.clock = r
	if s.halted.Load() == r.Doubtful || !s.halted.CompareAndSwap(!r.Doubtful, r.Doubtful) {
		return
	}
	if r.Doubtful {
		s.stats.halts.Add(1)
		s.cfg.Logger.Error("the clock cannot be trusted: nothing is refilled", slog.Duration("offset", r.Correction), slog.Duration("uncertainty", r.Uncertainty))
	} else {
		s.cfg.Logger.Info("the clock can be trusted: refills go on", slog.Duration("offset", r.Correction), slog.Duration("uncertainty", r.Uncertainty))
	}
}

// doubt drops the requests that have waited for as many replies as settle what time
// it is, and are undecided still.
func (s *Store) doubt(l *lane, pending []*request) []*request {
	kept := pending[:0]
	for _, r := range pending {
		if r.doubts++; r.doubts <= awsdb.JumpReplies {
			kept = append(kept, r)
			continue
		}
		s.fail(r, fmt.Errorf("%w: the clock of this machine may be off by %v; it must be set right, or DynamoDB's must", limiter.ErrUnavailable, l.knows.clock.Uncertainty))
	}
	return kept
}

// look reads the item.
func (s *Store) look(l *lane, pending []*request) []*request {
	if l.knows.clock.Doubtful {
		if pending = s.doubt(l, pending); len(pending) == 0 {
			return nil
		}
	}
	image, err := s.read(l, awsdb.Passes)
	if err != nil {
		for _, r := range pending {
			s.fail(r, err)
		}
		return nil
	}
	s.saw(l, image)
	confirm(pending)
	return pending
}

// confirm notes that the view was asked for after these requests came.
func confirm(pending []*request) {
	for _, r := range pending {
		r.confirmed = true
	}
}

// learn takes a reply for the bucket's state.
func (k *knowledge) learn(image *view) { k.view, k.known = image, true }

// carryOut sends the plan's write and ends its actors by what came of it.
func (s *Store) carryOut(l *lane, p *plan) []*request {
	p.units = s.cost(l)
	w := newWrite(s.cfg.Table, l.key, s.nextID(l.knows.view), p)
	began := s.cfg.Now()
	s.sendLease(l, p.step, began)
	o := s.send(l, w, p)
	o.doubted = w.doubted
	l.races.note(s.cfg.Now().Sub(began), o.err == nil && !o.applied)
	return s.conclude(l, p, o)
}

// conclude ends the actors of a plan by what came of its write, and returns the
// requests that still wait.
func (s *Store) conclude(l *lane, p *plan, o outcome) []*request {
	l.bill(p, o)
	if o.known {
		s.saw(l, o.image)
		confirm(p.actors)
		confirm(p.rest)
	} else if o.applied {
		l.knows.known = false
	}
	s.concludeLease(l, p.step, o)
	switch {
	case o.applied:
		l.probe.next(s.cfg.Now(), l.knows.moment())
		p.stage.settle(p.actors, o.image)
		s.addRest(l, p.actors, p.step)
		for _, r := range p.actors {
			s.applied(r)
		}
		return p.rest
	case o.err == nil: // the condition did not hold
		return append(s.waitAgain(p.actors, o), p.rest...)
	case o.known && errors.Is(o.err, errDropped):
		return append(s.dropBookings(p.actors, o), p.rest...)
	case errors.Is(o.err, limiter.ErrUncertain):
		for _, r := range p.actors {
			if !r.keep {
				s.mayTake(r, o.err)
			}
			s.fail(r, o.err)
		}
		return p.rest
	}
	for _, r := range append(p.actors, p.rest...) {
		s.fail(r, o.err)
	}
	return nil
}

// units is how many write units a write to the lane's item takes.
func (l *lane) units() int64 {
	if l.knows.view == nil {
		return 1
	}
	const unit = 1024
	return int64(l.knows.view.size+unit-1) / unit
}

// bill keeps account of the write units that the item has not counted.
func (l *lane) bill(p *plan, o outcome) {
	switch {
	case o.applied:
		l.owed = max(0, l.owed-p.units)
	case o.err == nil:
		l.owed += l.units()
	}
}

// waitAgain returns those actors of a write that was not applied whose callers are
// still there. Of a write that was, or may be yet, for all that is known, the takes are
// counted: another one decides.
func (s *Store) waitAgain(actors []*request, o outcome) []*request {
	var left []*request
	for _, r := range actors {
		takes := o.open && r.call != nil && r.takes()
		r.uncertain = r.uncertain || takes
		waits := r.state.CompareAndSwap(sent, waiting)
		if takes && (waits || !r.keep) {
			s.lost(r, errDropped)
		}
		if waits {
			left = append(left, r)
		}
	}
	return left
}

// dropBookings ends the actors that give or charge tokens, and returns the others.
func (s *Store) dropBookings(actors []*request, o outcome) []*request {
	var left []*request
	for _, r := range actors {
		if !r.books() {
			left = append(left, r)
			continue
		}
		if !r.keep {
			s.mayTake(r, o.err)
		}
		s.fail(r, o.err)
	}
	return s.waitAgain(left, o)
}

// errDropped says that a write which gives or charges tokens stays in doubt: its id is not
// in the item, where a replica that shares its slot can have written since. It is not made
// again by another write, which would perhaps be the second.
var errDropped = fmt.Errorf("%w: the reply was lost", limiter.ErrUncertain)

// outcome is what came of a write.
type outcome struct {
	applied bool
	known   bool // image is the item as it was during the call; nil = there is none
	image   *view
	err     error // neither applied nor refused
	doubted bool  // nobody knew what became of an attempt
	open    bool  // it may have been applied all the same, or may be yet
}

// send sends a write until its outcome is known, at most for the budget, and in
// doubt for as long as doubtPatience and somebody waits: a plan that is older is
// never sent. One whose reply was lost finds its id when it is sent again, unless a
// replica that shares its slot has written meanwhile: then its takes can be applied
// twice, which admits too little and never too much, and is counted; its refunds and
// charges are not applied twice, see expression.bookOnce.
func (s *Store) send(l *lane, w *write, p *plan) outcome {
	ctx, cancel := s.loop.Within(s.stopped, max(s.cfg.Budget, doubtPatience))
	defer cancel()
	sure, cancelSure := s.loop.Within(ctx, s.cfg.Budget)
	defer cancelSure()
	for try := 1; ; try++ {
		image, err := s.sendOnce(ctx, l, w)
		found, refused := awsdb.ConditionItem(err)
		err = awsdb.Translate(err)
		uncertain := errors.Is(err, limiter.ErrUncertain)
		switch {
		case err == nil:
			return outcome{applied: true, known: true, image: image}
		case refused:
			return s.refused(l, w, found)
		case errors.Is(err, errUnreadable):
			return outcome{applied: true, err: err}
		}
		w.doubted = w.doubted || uncertain
		waiting := sure
		if w.doubted {
			waiting = ctx
			s.turnAway(l, p, err)
		}
		if (uncertain || awsdb.Retryable(err) || w.doubted && errors.Is(err, awsdb.ErrOutage)) && p.anyWaits() && awsdb.Pause(waiting, s.loop, try) == nil {
			s.stats.resent.Add(1)
			l.owed += l.units()
			continue
		}
		if w.doubted && (w.books || p.owes()) {
			return s.inquire(l, w, err)
		}
		if w.doubted && !uncertain {
			err = fmt.Errorf("%w: %w", limiter.ErrUncertain, err)
		}
		return outcome{err: err}
	}
}

// turnAway fails who waits behind a write in doubt, when DynamoDB is taken for
// unavailable: only those whom the write is for know nothing until it answers.
func (s *Store) turnAway(l *lane, p *plan, err error) {
	if !errors.Is(err, awsdb.ErrOutage) {
		return
	}
	arrived, _ := s.lanes.next(l, false, s.cfg.Now)
	for _, r := range append(p.rest, arrived...) {
		s.fail(r, err)
	}
	p.rest = nil
}

// anyWaits reports whether there is anybody for whom a write would be sent again.
func (p *plan) anyWaits() bool {
	waits := func(r *request) bool { return r.state.Load() != gone }
	return slices.ContainsFunc(p.actors, waits) || slices.ContainsFunc(p.rest, waits)
}

// owes reports whether the write takes tokens that are to be given back, its caller having left.
func (p *plan) owes() bool {
	return slices.ContainsFunc(p.actors, func(r *request) bool { return !r.keep && r.takes() })
}

// refused is the outcome of a write whose condition did not hold: either the item
// is another by now, or it is the write's own, from an attempt whose reply was lost.
func (s *Store) refused(l *lane, w *write, item map[string]types.AttributeValue) outcome {
	s.stats.refused.Add(1)
	image, err := s.parse(l, item)
	if err != nil {
		return outcome{err: err}
	}
	return w.refusedBy(image)
}

// refusedBy is the outcome of a write that an item refuses.
func (w *write) refusedBy(image *view) outcome {
	o := outcome{applied: w.isIn(image), known: true, image: image}
	o.open = w.doubted && !o.applied && !w.isDead(image)
	if o.open && w.books {
		o.err = errDropped
	}
	return o
}

// isDead reports whether an item shows that the write was not applied, and never will be:
// its slot is as it was seen, also for charges and refunds, and something that it rests on
// is past and never comes back.
func (w *write) isDead(image *view) bool {
	switch {
	case image == nil:
		return false
	case w.base == nil: // it makes the item, with its id
		return image.slots[w.slot] == ""
	case image.slots[w.slot] != w.base.slots[w.slot], image.booked[w.slot] != w.base.booked[w.slot]:
		return false
	}
	return w.refilled != nil && image.refilled != w.refilled.refilled || image.shard.Epoch != w.base.shard.Epoch
}

// isIn reports whether an item shows that the write was applied. One that makes the item
// leaves its id in the slot alone.
func (w *write) isIn(image *view) bool {
	return image != nil && (image.slots[w.slot] == w.id || image.booked[w.slot] == w.id)
}

// inquire reads the item to see the outcome of a write in doubt. For one that only takes
// it does so once: no caller waits for tokens that are given back.
func (s *Store) inquire(l *lane, w *write, cause error) outcome {
	worth := awsdb.MayPass
	if !w.books {
		worth = func(error) bool { return false }
	}
	dropped := fmt.Errorf("%w: %w", errDropped, cause)
	image, err := s.read(l, worth)
	if err != nil {
		return outcome{err: dropped, open: true}
	}
	o := w.refusedBy(image)
	if o.open {
		o.err = dropped
	}
	return o
}

// errUnreadable says that a write was applied to an item that cannot be read.
var errUnreadable = errors.New("the item after the write")

// sendOnce sends a write and returns the item that it left.
func (s *Store) sendOnce(ctx context.Context, l *lane, w *write) (*view, error) {
	ctx, cancel := s.loop.Within(ctx, s.cfg.Attempt)
	defer cancel()
	if w.put != nil {
		_, err := s.client.PutItem(ctx, w.put)
		s.stats.wrote(err)
		return w.made, err
	}
	out, err := s.client.UpdateItem(ctx, w.update)
	if s.stats.wrote(err); err != nil {
		return nil, err
	}
	image, err := s.parse(l, out.Attributes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w: %w", limiter.ErrUncertain, errUnreadable, err)
	}
	return image, nil
}

// read reads the item as it is now; nil when there is none. It tries again after
// errors that are worth it.
func (s *Store) read(l *lane, worth func(error) bool) (*view, error) {
	ctx, cancel := s.loop.Within(s.stopped, s.cfg.Budget)
	defer cancel()
	for try := 0; ; {
		item, err := s.readOnce(ctx, l)
		if err == nil {
			return s.parse(l, item)
		}
		if err = awsdb.TranslateRead(err); !awsdb.Retry(ctx, s.loop, &try, worth(err)) {
			return nil, err
		}
	}
}

func (s *Store) readOnce(ctx context.Context, l *lane) (map[string]types.AttributeValue, error) {
	ctx, cancel := s.loop.Within(ctx, s.cfg.Attempt)
	defer cancel()
	s.stats.reads.Add(1)
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(s.cfg.Table), Key: l.key.Attributes(), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// parse reads an item; nil when there is none.
func (s *Store) parse(l *lane, item map[string]types.AttributeValue) (*view, error) {
	if len(item) == 0 {
		return nil, nil //nolint:nilnil // no item is a state of the bucket
	}
	var known *limiter.Limits
	if l.knows.view != nil {
		known = l.knows.view.limits
	}
	return parseItem(s.cfg.Table, l.key, item, known)
}
