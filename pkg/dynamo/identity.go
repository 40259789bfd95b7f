package dynamo

import (
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
)

// A process writes under a name that it draws when it starts. Each of its writes has a
// number, and so has each of its leases, so that none has the id of another. A machine
// that is copied while it runs has a copy of the process, with the same name and the same
// next numbers. So an id ends in a few letters that are drawn for it alone. The process
// that sees a number under its name which it has not come to yet knows of the copy, and
// draws another name.

const (
	// saltLetters is how many letters of an id are drawn for it alone.
	saltLetters = 2
	salts       = 36 * 36
	// nameLetters is how long the name of a run is: 45 bits.
	nameLetters = 9
)

// drawName draws the name of a run.
func drawName(by awsdb.Loop) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	var name [nameLetters]byte
	for i := range name {
		name[i] = letters[by.Draw(int64(len(letters)))]
	}
	return string(name[:])
}

// self is the name that the process writes under now.
func (s *Store) self() string {
	if drawn := s.drawn.Load(); drawn != nil {
		return *drawn
	}
	return s.replica
}

// numbered returns the id with a number, which ends in letters that are drawn.
func (s *Store) numbered(n uint64) string {
	salt := strconv.FormatInt(s.loop.Draw(salts), 36)
	return strconv.FormatUint(n, 36) + strings.Repeat("0", saltLetters-len(salt)) + salt
}

// numberOf returns the number of an id, 0 for one that has none.
func numberOf(id string) uint64 {
	n, err := strconv.ParseUint(id[:max(len(id)-saltLetters, 0)], 36, 64)
	if err != nil {
		return 0
	}
	return n
}

// unmask draws another name when an item shows that another process writes under this
// one's. The leases are over: the copy has them, too.
func (s *Store) unmask(v *view) {
	before := s.drawn.Load()
	if v == nil || !s.copied(v, s.self()) {
		return
	}
	name := drawName(s.loop)
	if !s.drawn.CompareAndSwap(before, &name) {
		return // another lane was faster
	}
	s.renamed.Add(1)
	s.cfg.Logger.Warn("another process writes under the name of this one, as after a machine was copied: another name is drawn", slog.String("name", name))
}

// copied reports whether an item has an id under a name with a number that this process
// has not come to yet.
func (s *Store) copied(v *view, name string) bool {
	writes := s.writes.Load()
	ahead := func(id string) bool {
		replica, number, _ := strings.Cut(id, ":")
		return replica == name && numberOf(number) > writes
	}
	if slices.ContainsFunc(v.slots[:], ahead) || ahead(v.turn) {
		return true
	}
	h := v.holding(name)
	return h != nil && numberOf(h.id) > s.leaseIDs.Load()
}
