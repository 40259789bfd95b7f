package limiter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Usage is the part of a store by which operators read the consumption of hours, days and months.
// Consumption is net of refunds. Shadows have none, see [BucketKey.Shadow]. A store keeps usage if
// its capabilities have UsageSnapshots; for any other the list is empty. storetest.RunUsage tests
// stores against it.
//
// A snapshot counts events too: the records of its consumption. An [Op] that changes the
// consumption of its bucket and is recorded alone is one event, for any number of limits. It
// changes the consumption if its net amount of at least one limit is not 0, so a denial without a
// charge is no event. A store that records several ops by one write counts that write, as for a
// lease's report. A store that scatters an op over the shards of a bucket counts each shard. A
// change of a balance by an operator is neither consumption nor an event.
type Usage interface {
	// ListUsage lists the snapshots that f selects. Those of one entity and one resource are in
	// order of their start. A snapshot may be missing while its net consumption is 0. Long names
	// are in the form in which the store keeps them. It refuses with [ErrInvalid] a filter that
	// [UsageFilter.Check] refuses.
	ListUsage(ctx context.Context, namespace string, f UsageFilter, p Page) (PageOf[UsageSnapshot], error)
}

// UsageWindow is the length of a snapshot's time. Windows are of UTC.
type UsageWindow uint8

// The windows.
const (
	UsageHour UsageWindow = iota
	UsageDay
	UsageMonth
)

// UsageWindows returns all windows, the shortest first.
func UsageWindows() []UsageWindow { return []UsageWindow{UsageHour, UsageDay, UsageMonth} }

// String returns hour, day or month.
func (w UsageWindow) String() string {
	if w > UsageMonth {
		return fmt.Sprintf("UsageWindow(%d)", uint8(w))
	}
	return [...]string{"hour", "day", "month"}[w]
}

// ParseUsageWindow reads the form of [UsageWindow.String]. Its errors wrap [ErrInvalid].
func ParseUsageWindow(text string) (UsageWindow, error) {
	for _, w := range UsageWindows() {
		if text == w.String() {
			return w, nil
		}
	}
	return 0, fmt.Errorf("%w: the window is %.100q; it must be hour, day or month", ErrInvalid, text)
}

// Start returns the start of the window that a time is in.
func (w UsageWindow) Start(at time.Time) time.Time {
	at = at.UTC()
	switch w {
	case UsageDay:
		return time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
	case UsageMonth:
		return time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
	case UsageHour:
	}
	return at.Truncate(time.Hour)
}

// End returns the end of the window that starts at a time: the start of the next one.
func (w UsageWindow) End(start time.Time) time.Time {
	switch w {
	case UsageDay:
		return start.UTC().AddDate(0, 0, 1)
	case UsageMonth:
		return start.UTC().AddDate(0, 1, 0)
	case UsageHour:
	}
	return start.UTC().Add(time.Hour)
}

// Retention returns how long a snapshot is kept after the end of its window; 0 = forever.
func (w UsageWindow) Retention() time.Duration {
	switch w {
	case UsageHour:
		return 14 * 24 * time.Hour
	case UsageDay:
		return 400 * 24 * time.Hour
	case UsageMonth:
	}
	return 0
}

// UsageFilter selects snapshots. The zero value selects all those of hours.
type UsageFilter struct {
	Entity   string // only those of this entity; "" = all
	Resource string // only those for this resource; "" = all
	Window   UsageWindow
	From, To time.Time // only those that start at From or later, and before To; zero = without a bound
}

// Times of snapshots.
const (
	minUsageYear = 1
	maxUsageYear = 9999
)

// Check refuses, with [ErrInvalid], a window that does not exist, years out of 1 to 9999, and a
// time that ends before it begins.
func (f UsageFilter) Check() error {
	switch from, to := f.From.UTC(), f.To.UTC(); {
	case f.Window > UsageMonth:
		return fmt.Errorf("%w: there is no window %d", ErrInvalid, uint8(f.Window))
	case from.Year() < minUsageYear || from.Year() > maxUsageYear || to.Year() < minUsageYear || to.Year() > maxUsageYear:
		return fmt.Errorf("%w: usage is of the years %d to %d", ErrInvalid, minUsageYear, maxUsageYear)
	case !from.IsZero() && !to.IsZero() && to.Before(from):
		return fmt.Errorf("%w: the time ends at %s, before it begins at %s", ErrInvalid, to.Format(time.RFC3339), from.Format(time.RFC3339))
	}
	return nil
}

// Selects reports whether the filter selects the windows that start at a time.
func (f UsageFilter) Selects(start time.Time) bool {
	return (f.From.IsZero() || !start.Before(f.From)) && (f.To.IsZero() || start.Before(f.To))
}

// UsageSnapshot is the consumption of an entity and a resource in a window.
type UsageSnapshot struct {
	Entity, Resource string
	Window           UsageWindow
	Start            time.Time    // UTC
	Limits           []LimitUsage // in order of names
	Events           int64        // number of records, see [Usage], except those of a program that did not count them
}

// LimitUsage is the consumption of one limit.
type LimitUsage struct {
	Limit  string
	Tokens int64 // millitokens, net of refunds; below zero where more was refunded than consumed
}

// UsageSummary sums up snapshots. The zero value is that of none.
type UsageSummary struct {
	Snapshots   int64          // of one entity and one resource each
	Windows     int64          // different starts of snapshots
	First, Last time.Time      // the earliest and the latest start; zero = there is no snapshot
	Limits      []LimitSummary // in order of names

	starts map[int64]struct{} // of the windows, in Unix time
}

// LimitSummary sums up the consumption of one limit.
type LimitSummary struct {
	Limit string
	Total int64 // millitokens; sums stop at the ends of int64
}

// Add adds a snapshot.
func (s *UsageSummary) Add(u *UsageSnapshot) {
	if s.Snapshots == 0 || u.Start.Before(s.First) {
		s.First = u.Start
	}
	if s.Snapshots == 0 || u.Start.After(s.Last) {
		s.Last = u.Start
	}
	s.Snapshots++
	if s.starts == nil {
		s.starts = make(map[int64]struct{})
	}
	s.starts[u.Start.Unix()] = struct{}{}
	s.Windows = int64(len(s.starts))
	for _, l := range u.Limits {
		i, found := slices.BinarySearchFunc(s.Limits, l.Limit, func(e LimitSummary, name string) int { return strings.Compare(e.Limit, name) })
		if !found {
			s.Limits = slices.Insert(s.Limits, i, LimitSummary{Limit: l.Limit})
		}
		s.Limits[i].Total = SaturatingSum(s.Limits[i].Total, l.Tokens)
	}
}

// Average returns the millitokens of a limit for each window, rounded to the nearest whole
// number, and halves away from zero.
func (s *UsageSummary) Average(l LimitSummary) int64 {
	if s.Windows == 0 {
		return 0
	}
	whole, rest := l.Total/s.Windows, l.Total%s.Windows
	switch {
	case rest > 0 && rest >= s.Windows-rest:
		whole++
	case rest < 0 && -rest >= s.Windows+rest:
		whole--
	}
	return whole
}

// SaturatingSum adds, and stops at the ends of int64.
func SaturatingSum(a, b int64) int64 {
	sum := a + b
	switch {
	case (a^sum)&(b^sum) >= 0: // mostly
		return sum
	case a > 0:
		return 1<<63 - 1
	default:
		return -1 << 63
	}
}
