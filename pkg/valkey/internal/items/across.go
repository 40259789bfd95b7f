package items

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// crossing is how long a transaction over several places may take from place to place, by the clock of the server of
// the later one.
const crossing = 5 * time.Second

// errAcross is of a transaction that this package cannot make.
var errAcross = errors.New("a transaction over several places changes more than one of them beside the first")

// across applies a transaction of several parts, one after the other. The first decides whether the others are applied.
// They are applied within a time, so that a message that is late finds nothing that was made since. They are
// either those of one place, or deletions without a condition, which may be applied again. A process that ends
// between leaves the others out.
func (s *Session) across(ctx context.Context, token string, writes []write, parts []part) (*result, error) {
	first, rest := parts[0], parts[1:]
	plain := !slices.ContainsFunc(rest, func(p part) bool {
		return slices.ContainsFunc(p.writes, func(i int) bool { return writes[i].Kind != schema.Delete || len(writes[i].Conditions) > 0 })
	})
	if !plain && len(rest) > 1 {
		return nil, wrong(errAcross)
	}
	if plain { // rule: what was deleted by an earlier try rests on the condition of this one
		token = ""
	}
	latest := make([]int64, len(rest))
	if err := inPlaces(len(rest), func(i int) (err error) {
		latest[i], err = s.deadline(ctx, rest[i].place)
		return err
	}); err != nil {
		return nil, err
	}
	r := &result{applied: true, held: make([]bool, len(writes)), images: make([]attributes, len(writes))}
	for i := range r.held {
		r.held[i] = true
	}
	if err := s.applyPart(ctx, token, writes, first, 0, r); err != nil || !r.applied { // rule: nothing is applied in other places before the first
		return r, err
	}
	for i, p := range rest {
		if err := s.applyPart(ctx, token, writes, p, latest[i], r); err != nil || !r.applied {
			return r, err
		}
	}
	return r, nil
}

// applyPart applies one part of a transaction, and notes its outcome in that of the whole.
func (s *Session) applyPart(ctx context.Context, token string, writes []write, p part, latest int64, whole *result) error {
	b := &batch{place: p.place, token: token, latest: latest, writes: make([]write, len(p.writes))}
	for i, of := range p.writes {
		b.writes[i] = writes[of]
	}
	r, err := s.apply(ctx, b, gains{})
	if err != nil {
		return err
	}
	whole.applied = r.applied
	for i, of := range p.writes {
		if !r.applied {
			whole.held[of], whole.images[of] = r.held[i], r.images[i]
		}
	}
	return nil
}

// deadline returns the time until which a later part may be applied, by the clock of its server.
func (s *Session) deadline(ctx context.Context, place int) (latest int64, err error) {
	answers, err := s.read(ctx, place, func(client rueidis.Client) []rueidis.Completed {
		return []rueidis.Completed{client.B().Time().Build()}
	})
	if err != nil {
		return 0, err
	}
	told, err := answers[0].AsIntSlice()
	if err != nil || len(told) != 2 {
		return 0, s.db.translate(err)
	}
	return told[0]*1000 + told[1]/1000 + crossing.Milliseconds(), nil
}
