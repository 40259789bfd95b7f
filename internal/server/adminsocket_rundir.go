package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// systemDir is in a directory of root: a directory there has the owner that root chose.
const systemDir = "/run/ratelimit"

// RunDirVariable is the environment variable that names the run directory, and then the
// only one.
const RunDirVariable = "RATELIMIT_RUN_DIR"

// runDirs returns where sockets are without a data directory, best first.
func runDirs() []string {
	if dir := os.Getenv(RunDirVariable); filepath.IsAbs(dir) {
		return []string{dir}
	}
	var dirs []string
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		dirs = append(dirs, filepath.Join(dir, "ratelimit"))
	}
	return append(dirs, systemDir, filepath.Join(os.TempDir(), "ratelimit-"+strconv.Itoa(os.Geteuid())))
}

// ListenSocketRun listens in the first run directory that can be used. It is made when it is
// missing; one that another user owns or may write is not used.
func ListenSocketRun(ctx context.Context) (*SocketListener, error) {
	var all error
	for _, dir := range runDirs() {
		if err := ownDir(dir); err != nil {
			all = errors.Join(all, err)
			continue
		}
		l, err := ListenSocketIn(ctx, dir)
		if err == nil {
			return l, nil
		}
		all = errors.Join(all, err)
	}
	return nil, all
}

// ownDir makes a directory for this user alone, or finds that it is one.
func ownDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return private(dir, os.Geteuid())
}

// private says why a directory is not one that only the user uid may write.
func private(dir string, uid int) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not used: it is no directory", dir)
	case !ok || int64(owner.Uid) != int64(uid):
		return fmt.Errorf("%s is not used: another user owns it", dir)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s is not used: other users may write it; its mode is %#o, and must be 0700", dir, info.Mode().Perm())
	}
	return nil
}

// trusted reports whether the files of a run directory were put there by this user, or by
// one that root chose.
func trusted(dir string) bool {
	if private(dir, os.Geteuid()) == nil {
		return true
	}
	info, err := os.Lstat(dir)
	return dir == systemDir && err == nil && info.IsDir() && info.Mode().Perm()&0o022 == 0
}

// FindSocket returns the sockets in run directories at which a service answers.
func FindSocket(ctx context.Context) []string {
	ctx, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	var found []string
	for _, dir := range runDirs() {
		if !trusted(dir) {
			continue
		}
		for slot := range maxSlots {
			path := filepath.Join(dir, slotName(slot))
			if SocketAnswers(ctx, path) {
				found = append(found, path)
			}
		}
	}
	return found
}
