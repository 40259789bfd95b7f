package limiter

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestEachZoneOfTheProgramIsRead(t *testing.T) {
	zones, err := readZones()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range zones.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		if n++; f.Method != zip.Store {
			t.Errorf("%s is compressed", f.Name)
		}
		if _, err := loadZone(f.Name); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
	if n < 500 {
		t.Errorf("%d zones, want all", n)
	}
	for _, bad := range []string{"Local", "Europe", "Europe/", "/Europe/Berlin", "Europe/../Europe/Berlin", "europe/berlin", "nowhere"} {
		if l, err := loadZone(bad); err == nil {
			t.Errorf("%q is the zone %v", bad, l)
		}
	}
}

// A replica on a machine with another time zone database has the same windows as all others.
func TestTheZonesOfTheMachineDoNotCount(t *testing.T) {
	zones, err := readZones()
	if err != nil {
		t.Fatal(err)
	}
	tokyo, err := zones.Open("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "Europe"), 0o700); err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 1<<16)
	n, _ := tokyo.Read(data)
	if err := os.WriteFile(filepath.Join(dir, "Europe", "Berlin"), data[:n], 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ZONEINFO", dir)
	w, err := newWindows(&Limit{Calendar: Calendar{Unit: CalendarDay, Zone: "Europe/Berlin"}})
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	want := time.Date(2026, 6, 30, 22, 0, 0, 0, time.UTC)
	if got := w.at(noon); got.Start != want.Unix() {
		t.Errorf("the day begins at %v, want %v", time.Unix(got.Start, 0).UTC(), want)
	}
}
