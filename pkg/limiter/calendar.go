package limiter

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Calendar is how the windows of a limit follow one another: those of a quota, and those of a limit in
// flight. The zero Calendar is that of a limit without windows. Calendars are compared with ==.
type Calendar struct {
	Unit CalendarUnit
	Zone string // of the IANA Time Zone Database, such as "Europe/Berlin"; "" = UTC. Hours have none
	// Anchor is the first day: of weeks 2 (Tuesday) to 7; of months 2 to 31, or the last day of a
	// shorter month. 0 = Monday, or the first of a month. Hours and days have none.
	Anchor int
	// MaxTime is the longest time of a request in flight: MinInFlight to MaxInFlight, whole seconds.
	// 0 of a quota. A window is four times as long, and windows follow one another from 1970 on.
	MaxTime time.Duration
}

// The range of the longest time of a request in flight.
const (
	MinInFlight = 10 * time.Second
	MaxInFlight = 24 * time.Hour
)

// CalendarUnit is the length of a window by the calendar.
type CalendarUnit uint8

// The units.
const (
	NoCalendar CalendarUnit = iota
	CalendarHour
	CalendarDay
	CalendarWeek
	CalendarMonth
	InFlight // not by the calendar: requests that have begun, and have not ended
)

// String returns the name of the unit.
func (u CalendarUnit) String() string {
	return [...]string{NoCalendar: "", CalendarHour: "hour", CalendarDay: "day", CalendarWeek: "week", CalendarMonth: "month", InFlight: "in flight"}[u]
}

// ParseCalendarUnit returns the unit of a name.
func ParseCalendarUnit(name string) (CalendarUnit, error) {
	for u := CalendarHour; u <= CalendarMonth; u++ {
		if u.String() == name {
			return u, nil
		}
	}
	return NoCalendar, fmt.Errorf("%w: a quota is for each hour, day, week or month, not %.100q", ErrInvalid, name)
}

// weekdays are the names of days from the first anchor of a week on.
func weekdays() []string {
	return []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}
}

// ParseAnchor returns the anchor that a text names: a day of a week, or the number of a day of a month.
func (u CalendarUnit) ParseAnchor(text string) (int, error) {
	switch n, err := strconv.Atoi(text); {
	case u == CalendarWeek:
		if i := slices.Index(weekdays(), strings.ToLower(text)); i >= 0 {
			return firstAnchor(i + 1), nil
		}
		return 0, fmt.Errorf("%w: a week begins on monday to sunday, not %.100q", ErrInvalid, text)
	case u != CalendarMonth:
		return 0, fmt.Errorf("%w: weeks and months begin on a day of choice, a quota for each %v does not", ErrInvalid, u)
	case err != nil || n < 1 || n > 31 || strconv.Itoa(n) != text: // readers of YAML disagree about 030
		return 0, fmt.Errorf("%w: a month begins on a day from 1 to 31, not %.100q; shorter months begin on their last day", ErrInvalid, text)
	default:
		return firstAnchor(n), nil
	}
}

// firstAnchor returns the only form of an anchor: 0 for the first day.
func firstAnchor(n int) int {
	if n == 1 {
		return 0
	}
	return n
}

// Validate returns the first error of the calendar, wrapping [ErrInvalid].
func (c Calendar) Validate() error {
	most := [...]int{CalendarWeek: 7, CalendarMonth: 31}
	switch {
	case c.Unit == InFlight:
		return c.validateInFlight()
	case c.Unit > InFlight:
		return fmt.Errorf("%w: there is no unit %d of a calendar", ErrInvalid, c.Unit)
	case c.Unit == NoCalendar && c != (Calendar{}):
		return fmt.Errorf("%w: a zone and a first day are those of a quota", ErrInvalid)
	case c.Anchor < 0 || c.Anchor == 1 || c.Anchor > most[c.Unit]: // equal calendars have one form, and so one bucket
		return fmt.Errorf("%w: the anchor of a %v is %d; it must be 2 to %d, or 0 for the first day", ErrInvalid, c.Unit, c.Anchor, most[c.Unit])
	case c.Unit == CalendarHour && c.Zone != "":
		return fmt.Errorf("%w: a quota for each hour has no zone: hours are those of UTC", ErrInvalid)
	}
	_, err := c.location()
	return err
}

// validateInFlight is Validate of a limit in flight.
func (c Calendar) validateInFlight() error {
	switch {
	case c.Zone != "" || c.Anchor != 0:
		return fmt.Errorf("%w: a limit in flight has neither a zone nor a first day", ErrInvalid)
	case c.MaxTime < MinInFlight || c.MaxTime > MaxInFlight || c.MaxTime%time.Second != 0:
		return fmt.Errorf("%w: the longest time of a request in flight is %v; it must be whole seconds, 10s to 24h", ErrInvalid, c.MaxTime)
	}
	return nil
}

// location returns the zone.
func (c Calendar) location() (*time.Location, error) {
	l, err := loadZone(c.Zone)
	if err != nil {
		return nil, errZone(c.Zone)
	}
	return l, nil
}

func errZone(name string) error {
	return fmt.Errorf("%w: there is no time zone %.100q; write one of the IANA Time Zone Database, such as Europe/Berlin or UTC", ErrInvalid, name)
}

// String writes the calendar as [ParseCalendar] reads it.
func (c Calendar) String() string {
	if c.Unit == InFlight {
		return inFlight + " " + durationString(c.MaxTime)
	}
	text := c.Unit.String() + " calendar"
	if c.Zone != "" {
		text += " " + c.Zone
	}
	switch {
	case c.Anchor <= 1:
	case c.Unit == CalendarWeek:
		text += " from " + weekdays()[c.Anchor-1]
	default:
		text += " from " + strconv.Itoa(c.Anchor)
	}
	return text
}

const inFlight = "in flight"

// ParseCalendar reads a calendar: "month calendar", "week calendar Europe/Berlin from sunday", "in flight 10m".
// The zone may be missing, and so may the first day.
func ParseCalendar(text string) (c Calendar, err error) {
	if longest, found := strings.CutPrefix(text, inFlight+" "); found {
		c = Calendar{Unit: InFlight}
		if c.MaxTime, err = time.ParseDuration(strings.TrimSpace(longest)); err != nil {
			return c, fmt.Errorf("%w: a limit in flight is written like 5 in flight 10m, not with %.100q", ErrInvalid, longest)
		}
		return c, c.Validate()
	}
	words := strings.Fields(text)
	if len(words) < 2 || words[1] != "calendar" {
		return c, errCalendar
	}
	if c.Unit, err = ParseCalendarUnit(words[0]); err != nil {
		return c, err
	}
	words = words[2:]
	if len(words) > 0 && words[0] != "from" {
		c.Zone, words = ZoneOf(words[0]), words[1:]
	}
	if len(words) == 2 && words[0] == "from" {
		if c.Anchor, err = c.Unit.ParseAnchor(words[1]); err != nil {
			return c, err
		}
		words = nil
	}
	if len(words) > 0 {
		return c, errCalendar
	}
	return c, c.Validate()
}

var errCalendar = fmt.Errorf("%w: a quota is written like 2000000/month calendar, with a zone and a first day as in 100/week calendar Europe/Berlin from sunday", ErrInvalid)

// ZoneOf returns the Calendar.Zone for a name: "" for UTC.
func ZoneOf(name string) string {
	if name == "UTC" {
		return ""
	}
	return name
}

// BudgetOf returns the name of the limit that a quota of this name is a budget of: usd for usd.month. Takes
// from that limit count for the quota too. It is "" for any other name, and for a quota of another
// unit.
func (c Calendar) BudgetOf(name string) string {
	of, found := strings.CutSuffix(name, c.Unit.String())
	if !found || len(of) < 2 || of[len(of)-1] != '.' {
		return ""
	}
	return of[:len(of)-1]
}

// Window is one window of a calendar. The zero Window is that of a bucket that is for all time.
type Window struct {
	Start, End int64  // Unix seconds; End is the first one after it
	Calendar   uint64 // tells windows of the same time by different calendars apart
}

// inFlightWindow is in the Calendar of windows of limits in flight, and of no others.
const inFlightWindow = 1 << 63

// windows finds the windows of a calendar. It is safe for concurrent use.
type windows struct {
	Calendar

	zone *time.Location
	hash uint64
	last atomic.Pointer[Window] // that was found last
}

// newWindows returns the windows of a limit, whose calendar must be valid.
func newWindows(l *Limit) (*windows, error) {
	zone, err := l.Calendar.location()
	return &windows{Calendar: l.Calendar, zone: zone, hash: l.windowHash()}, err
}

// Of reports whether the window is one of a limit. That of a bucket for all time is of limits without windows.
func (w Window) Of(l *Limit) bool {
	if w == (Window{}) || !l.Windowed() {
		return w == (Window{}) && !l.Windowed()
	}
	return w.Calendar == l.windowHash()
}

// windowHash tells windows of the limit's calendar from those of others. Limits in flight have windows, and so buckets,
// of their own.
func (l *Limit) windowHash() uint64 {
	if l.IsInFlight() {
		return fnv1a(l.Calendar.String()+" "+l.Name) | inFlightWindow
	}
	return fnv1a(l.Calendar.String()) &^ inFlightWindow
}

// unit returns the unit of the calendar of a quota's window. Daylight saving may make a day or a week an hour longer.
func (w Window) unit() CalendarUnit {
	const day = 24 * 60 * 60
	switch length := w.End - w.Start; {
	case length <= day/2:
		return CalendarHour
	case length <= 2*day:
		return CalendarDay
	case length <= 8*day:
		return CalendarWeek
	default:
		return CalendarMonth
	}
}

// at returns the window with a time.
func (s *windows) at(now time.Time) Window {
	second := now.Unix()
	if length := quarters * int64(s.MaxTime/time.Second); length > 0 {
		start := second - (second%length+length)%length
		return Window{start, start + length, s.hash}
	}
	if w := s.last.Load(); w != nil && w.Start <= second && second < w.End {
		return *w
	}
	w := s.find(now.In(s.zone))
	s.last.Store(&w)
	return w
}

// find returns the window with a time of the zone. Each instant is in the window of its local date. A
// day begins at its first instant, also where its midnight is left out or comes twice.
func (s *windows) find(local time.Time) Window {
	y, m, d := local.Date()
	switch s.Unit {
	case CalendarDay:
		return s.between(y, m, d, y, m, d+1)
	case CalendarWeek:
		since := (int(local.Weekday()) + 6 - (max(s.Anchor, 1) - 1)) % 7 // days since the first one
		return s.between(y, m, d-since, y, m, d-since+7)
	case CalendarMonth:
		first := 0
		if d < s.first(y, m) {
			first = -1
		}
		y1, m1 := month(y, m, first)
		y2, m2 := month(y, m, first+1)
		return s.between(y1, m1, s.first(y1, m1), y2, m2, s.first(y2, m2))
	case CalendarHour, InFlight, NoCalendar:
	}
	start := local.Unix() - int64(local.UTC().Minute()*60+local.UTC().Second())
	return Window{start, start + 3600, s.hash}
}

// month returns the month n months later.
func month(y int, m time.Month, n int) (int, time.Month) {
	t := time.Date(y, m+time.Month(n), 1, 0, 0, 0, 0, time.UTC)
	return t.Year(), t.Month()
}

// first returns the first day of the window that begins in a month.
func (s *windows) first(y int, m time.Month) int {
	return min(max(s.Anchor, 1), time.Date(y, m+1, 0, 0, 0, 0, 0, time.UTC).Day())
}

func (s *windows) between(y1 int, m1 time.Month, d1 int, y2 int, m2 time.Month, d2 int) Window {
	return Window{s.midnight(y1, m1, d1), s.midnight(y2, m2, d2), s.hash}
}

// midnight returns the first instant of a date. [time.Date] does not say which of two midnights it
// returns, and has none where a zone leaves it out.
func (s *windows) midnight(y int, m time.Month, d int) int64 {
	const day = 24 * 60 * 60
	naive := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix()
	offset := func(at int64) int64 {
		_, seconds := time.Unix(at, 0).In(s.zone).Zone()
		return int64(seconds)
	}
	before, after := naive-offset(naive-day), naive-offset(naive+day)
	for _, at := range []int64{min(before, after), max(before, after)} {
		if at+offset(at) == naive {
			return at
		}
	}
	change, _ := time.Unix(before, 0).In(s.zone).ZoneBounds()
	return cmp.Or(change.Unix(), before)
}
