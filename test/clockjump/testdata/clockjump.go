package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

// clockJump is the memory of the file that CLOCKJUMP_FILE names; nil = there is none.
var clockJump *int64

func init() {
	name, found := syscall.Getenv("CLOCKJUMP_FILE")
	if !found {
		return
	}
	file, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic("open CLOCKJUMP_FILE: " + err.Error())
	}
	memory, err := syscall.Mmap(file, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("map CLOCKJUMP_FILE: " + err.Error())
	}
	clockJump = (*int64)(unsafe.Pointer(&memory[0]))
}

// jumpedBy is how many seconds the wall clock is set by.
func jumpedBy() int64 {
	if clockJump == nil {
		return 0
	}
	return atomic.LoadInt64(clockJump)
}
