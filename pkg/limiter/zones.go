package limiter

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"io/fs"
	"sync"
	"time"
)

// zoneinfo is the IANA Time Zone Database, which is in the public domain, as Go has it in lib/time. make
// zones brings it up to date.
//
//go:embed zoneinfo.zip
var zoneinfo []byte

// readZones opens the database once.
var readZones = sync.OnceValues(func() (*zip.Reader, error) {
	return zip.NewReader(bytes.NewReader(zoneinfo), int64(len(zoneinfo)))
})

// loadZone returns a zone of the database in the program. That of the machine can be another one on each
// replica, and the windows of a quota with it. "" and "UTC" are UTC.
func loadZone(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	zones, err := readZones()
	if err != nil {
		return nil, err
	}
	data, err := fs.ReadFile(zones, name)
	if err != nil {
		return nil, err
	}
	return time.LoadLocationFromTZData(name, data)
}
