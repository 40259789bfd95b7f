package server

import (
	"bufio"
	"bytes"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// MemorySource says where a limit stands.
type MemorySource string

// The sources, in the order in which they are asked.
const (
	FromGo     MemorySource = "GOMEMLIMIT"
	FromCgroup MemorySource = "cgroup"
	FromTotal  MemorySource = "total memory"
	Unknown    MemorySource = "unknown"
)

// AssumedMemory is the memory of a machine that does not say how much it has: 1 GiB.
const AssumedMemory = 1 << 30

// FindMemoryLimit returns the memory that this process may use, in bytes: Go's own limit if one is
// set, else the least limit of its control groups, else the machine's memory.
func FindMemoryLimit() (int64, MemorySource) {
	return find(debug.SetMemoryLimit(-1), os.DirFS("/"))
}

func find(goLimit int64, root fs.FS) (int64, MemorySource) {
	total := totalOf(root)
	if goLimit > 0 && goLimit < math.MaxInt64 {
		return goLimit, FromGo
	}
	if group := cgroupOf(root); group < total { // none is the greatest number
		return group, FromCgroup
	}
	if total < math.MaxInt64 {
		return total, FromTotal
	}
	return AssumedMemory, Unknown
}

// totalOf returns the machine's memory; the greatest number when it is not known.
func totalOf(root fs.FS) int64 {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return math.MaxInt64
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		rest, found := strings.CutPrefix(lines.Text(), "MemTotal:")
		if !found {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
		if err == nil && kib > 0 && kib < math.MaxInt64>>10 {
			return kib << 10
		}
	}
	return math.MaxInt64
}

// cgroupOf returns the least limit of the process's control groups, of version 1 or 2, and
// of those above them; the greatest number for none. In a container the file system shows
// its own group as the highest, under any name that the process has for it.
func cgroupOf(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return least
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		id, rest, _ := strings.Cut(lines.Text(), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		switch {
		case id == "0" && controllers == "":
			least = min(least, leastAbove(root, "sys/fs/cgroup", group, "memory.max"))
		case controllers == "memory":
			least = min(least, leastAbove(root, "sys/fs/cgroup/memory", group, "memory.limit_in_bytes"))
		}
	}
	return least
}

// leastAbove returns the least limit in the files of a group and of those above it.
func leastAbove(root fs.FS, mount, group, file string) int64 {
	least := int64(math.MaxInt64)
	for {
		if text, err := fs.ReadFile(root, path.Join(mount, group, file)); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
				least = min(least, n)
			}
		}
		if group == "/" || group == "." || group == "" {
			return least
		}
		group = path.Dir(group)
	}
}
