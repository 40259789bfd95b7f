package limiter

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// zones have changes at midnight, of half an hour, of a whole day, and none.
func zones() []string {
	return []string{
		"", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Beirut", "Pacific/Apia", "Asia/Kathmandu",
		"Africa/Cairo", "America/St_Johns", "Antarctica/Troll", "Africa/Casablanca", "America/Scoresbysund",
	}
}

func windowsOf(t interface{ Fatal(...any) }, c Calendar) *windows {
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	s, err := newWindows(&Limit{Calendar: c})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Each instant is in one window, which begins with the first instant of its first date. Windows leave no
// gap.
func TestWindowsCoverTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Calendar{Unit: rapid.SampledFrom([]CalendarUnit{CalendarHour, CalendarDay, CalendarWeek, CalendarMonth}).Draw(t, "unit")}
		if c.Unit != CalendarHour {
			c.Zone = rapid.SampledFrom(zones()).Draw(t, "zone")
		}
		most := map[CalendarUnit]int{CalendarWeek: 7, CalendarMonth: 31}
		c.Anchor = firstAnchor(rapid.IntRange(0, most[c.Unit]).Draw(t, "anchor"))
		s := windowsOf(t, c)
		at := time.Unix(rapid.Int64Range(946684800, 4102444800).Draw(t, "at"), 0) // 2000 to 2100
		w := s.find(at.In(s.zone))
		if at.Unix() < w.Start || at.Unix() >= w.End {
			t.Fatalf("%v of %v: %v is not within %v to %v", c.Unit, c, at.In(s.zone), time.Unix(w.Start, 0).In(s.zone), time.Unix(w.End, 0).In(s.zone))
		}
		for _, same := range []int64{w.Start, w.End - 1, (w.Start + w.End) / 2} {
			if got := s.find(time.Unix(same, 0).In(s.zone)); got != w {
				t.Fatalf("%v of %v: %v is in %v, and not in %v", c.Unit, c, time.Unix(same, 0).In(s.zone), got, w)
			}
		}
		if next := s.find(time.Unix(w.End, 0).In(s.zone)); next.Start != w.End {
			t.Fatalf("%v of %v: %v ends, and the next one begins at %v", c.Unit, c, time.Unix(w.End, 0).In(s.zone), time.Unix(next.Start, 0).In(s.zone))
		}
		if first := time.Unix(w.Start, 0).In(s.zone); c.Unit != CalendarHour && first.Add(-time.Second).Day() == first.Day() {
			t.Fatalf("%v of %v: begins at %v, which is not the first instant of its date", c.Unit, c, first)
		}
	})
}

// Two calendars with the same windows are equal: limits of theirs share one bucket, in which both count.
func TestCalendarHasOneForm(t *testing.T) {
	for text, u := range map[string]CalendarUnit{"1": CalendarMonth, "Monday": CalendarWeek} {
		if got, err := u.ParseAnchor(text); got != 0 || err != nil {
			t.Errorf("%s of a %v: got %d, %v", text, u, got, err)
		}
		if err := (Calendar{Unit: u, Anchor: 1}).Validate(); err == nil {
			t.Errorf("a %v has two forms", u)
		}
	}
}

func TestWindows(t *testing.T) {
	at := func(text string) time.Time {
		when, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	for _, test := range []struct {
		name          string
		of            Calendar
		now, from, to string
	}{
		{"hour", Calendar{Unit: CalendarHour}, "2026-11-26T10:59:59Z", "2026-11-26T10:00:00Z", "2026-11-26T11:00:00Z"},
		{"day", Calendar{Unit: CalendarDay}, "2026-11-26T00:00:00Z", "2026-11-26T00:00:00Z", "2026-11-27T00:00:00Z"},
		{"a day of 23 hours", Calendar{Unit: CalendarDay, Zone: "Europe/Berlin"}, "2026-03-29T12:00:00+02:00", "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00"},
		{"a day of 25 hours", Calendar{Unit: CalendarDay, Zone: "Europe/Berlin"}, "2026-10-25T02:30:00+01:00", "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00"},
		{"a day without a midnight", Calendar{Unit: CalendarDay, Zone: "Africa/Cairo"}, "2026-04-24T05:00:00+03:00", "2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"},
		{"a day that was left out", Calendar{Unit: CalendarDay, Zone: "Pacific/Apia"}, "2011-12-31T00:00:00+14:00", "2011-12-31T00:00:00+14:00", "2012-01-01T00:00:00+14:00"},
		{"week", Calendar{Unit: CalendarWeek}, "2026-11-26T10:00:00Z", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"},
		{"week from Sunday", Calendar{Unit: CalendarWeek, Anchor: 7}, "2026-11-28T23:00:00Z", "2026-11-22T00:00:00Z", "2026-11-29T00:00:00Z"},
		{"month", Calendar{Unit: CalendarMonth, Zone: "Europe/Berlin"}, "2026-10-31T23:30:00Z", "2026-11-01T00:00:00+01:00", "2026-12-01T00:00:00+01:00"},
		{"month from the 15th", Calendar{Unit: CalendarMonth, Anchor: 15}, "2026-01-14T00:00:00Z", "2025-12-15T00:00:00Z", "2026-01-15T00:00:00Z"},
		{"month from the 31st", Calendar{Unit: CalendarMonth, Anchor: 31}, "2026-02-28T00:00:00Z", "2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z"},
		{"the month before", Calendar{Unit: CalendarMonth, Anchor: 31}, "2026-02-27T00:00:00Z", "2026-01-31T00:00:00Z", "2026-02-28T00:00:00Z"},
	} {
		s := windowsOf(t, test.of)
		if got, want := s.at(at(test.now)), (Window{at(test.from).Unix(), at(test.to).Unix(), s.hash}); got != want {
			t.Errorf("%s: %v to %v, want %v to %v", test.name, time.Unix(got.Start, 0).In(s.zone), time.Unix(got.End, 0).In(s.zone), test.from, test.to)
		}
	}
}

func TestCalendarText(t *testing.T) {
	for _, text := range []string{"hour calendar", "day calendar Europe/Berlin", "week calendar Asia/Kathmandu from sunday", "month calendar from 31", "in flight 10s", "in flight 1h30m", "in flight 24h"} {
		c, err := ParseCalendar(text)
		if err != nil || c.String() != text {
			t.Errorf("%q is read as %q, %v", text, c, err)
		}
	}
	if c, err := ParseCalendar("day calendar UTC"); err != nil || c != (Calendar{Unit: CalendarDay}) {
		t.Errorf("UTC is read as %+v, %v", c, err)
	}
	for _, text := range []string{
		"", "day", "day calender", "year calendar", "day calendar Europe/Berln", "day calendar from 2", "hour calendar Europe/Berlin", "month calendar from 32",
		"month calendar from 0", "month calendar from 030", "month calendar from +5", "week calendar from someday", "day calendar Local", "month calendar UTC from", "month calendar UTC UTC", "month calendar ../../etc/passwd",
		"in flight", "in flight ", "in flight 9s", "in flight 24h1s", "in flight 10500ms", "in flight -10m", "in flight 10m UTC", "in flight calendar",
	} {
		if c, err := ParseCalendar(text); err == nil {
			t.Errorf("%q is read as %q", text, c)
		}
	}
}
