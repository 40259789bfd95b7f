package server

import (
	"bytes"
	"os"
	"runtime/metrics"
	"strconv"
)

// residentBytes returns the resident memory of the process. Where the system does not tell it, that is the
// memory that Go has from the system.
func residentBytes() int64 {
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := bytes.Fields(text); len(fields) > 1 {
			if pages, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
				return pages * int64(os.Getpagesize())
			}
		}
	}
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64()) // #nosec G115 -- less than any memory
}
