package server

import (
	"math"
	"testing"
	"testing/fstest"
)

func TestFind(t *testing.T) {
	meminfo := "MemFree:  5 kB\nMemTotal:        8000000 kB\n"
	const total, none = 8_000_000 << 10, math.MaxInt64
	tests := []struct {
		name  string
		goMax int64
		files map[string]string
		want  int64
		from  MemorySource
	}{
		{"Go's limit is first", 100 << 20, map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1000000\n"}, 100 << 20, FromGo},
		{"version 2", none, map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "536870912\n"}, 512 << 20, FromCgroup},
		{"version 2, above", none, map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/kubepods/pod/c\n",
			"sys/fs/cgroup/kubepods/pod/c/memory.max": "max\n", "sys/fs/cgroup/kubepods/pod/memory.max": "268435456\n", "sys/fs/cgroup/kubepods/memory.max": "536870912\n",
		}, 256 << 20, FromCgroup},
		{"version 1", none, map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "5:devices:/x\n4:memory:/docker/c\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "134217728\n",
		}, 128 << 20, FromCgroup},
		{"version 1 without a limit", none, map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "4:memory:/c\n",
			"sys/fs/cgroup/memory/c/memory.limit_in_bytes": "9223372036854771712\n",
		}, total, FromTotal},
		{"no group", none, map[string]string{"proc/meminfo": meminfo}, total, FromTotal},
		{"nothing known", none, map[string]string{"proc/self/cgroup": "\x00::\n4:memory", "proc/meminfo": "MemTotal: many kB"}, AssumedMemory, Unknown},
	}
	for _, tt := range tests {
		root := fstest.MapFS{}
		for name, text := range tt.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got, from := find(tt.goMax, root); got != tt.want || from != tt.from {
			t.Errorf("%s: got %d from %s, want %d from %s", tt.name, got, from, tt.want, tt.from)
		}
	}
	if got, _ := FindMemoryLimit(); got <= 0 {
		t.Errorf("this machine has %d bytes", got)
	}
}
