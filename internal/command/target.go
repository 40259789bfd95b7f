package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxLinks bounds how many links lead to a file, as systems do.
const maxLinks = 40

// Target returns the regular file that a path leads to, which may be missing: the last
// link is followed, so that a rename replaces the file and not the link. A device, a FIFO
// or a directory would be replaced too, and is refused.
func Target(path string) (string, error) {
	name := path
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is %s, and no regular file; - is the standard output", name, kind(info.Mode()))
	}
	for range maxLinks {
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return path, nil
		case err != nil:
			return "", err
		case info.Mode().Type() != fs.ModeSymlink:
			return path, sameFile(name, path)
		}
		to, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		dir, _ := filepath.Split(path)
		if filepath.IsAbs(to) {
			dir = ""
		}
		path = dir + to // not cleaned: a directory before .. may be a link too
	}
	return "", fmt.Errorf("%s: more than %d links, one to another", name, maxLinks)
}

// sameFile refuses a name that opens another file than the path that its links spell, such
// as one below /proc.
func sameFile(name, path string) error {
	opened, err := os.Stat(name)
	if err != nil {
		return err
	}
	spelled, err := os.Stat(path)
	if err == nil && !os.SameFile(opened, spelled) {
		err = fmt.Errorf("%s is not %s any more", name, path)
	}
	return err
}

func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	default:
		return "something else"
	}
}
