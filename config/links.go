package config

import (
	"io/fs"
	"os"
	"path/filepath"
)

// maxLinks bounds how many symbolic links are followed on the way to a file.
const maxLinks = 40

// way is the way from a name to a file.
type way struct {
	file  string   // absolute and without links
	dirs  []string // directories in which a change can lead the name to another file
	links []string // the symbolic links on the way, each with its target
}

// follow returns the way from a name to its file. dirs has the directory of the name and that of
// every symbolic link.
func follow(name string) way {
	var w way
	name, err := filepath.Abs(name)
	if err != nil {
		return w
	}
	for range maxLinks {
		w.file = name
		link := firstLink(name)
		if link == "" {
			w.dirs = append(w.dirs, existing(filepath.Dir(name)))
			return w
		}
		w.dirs = append(w.dirs, filepath.Dir(link))
		target, err := os.Readlink(link)
		if err != nil {
			return w
		}
		w.links = append(w.links, link+"\x00"+target)
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(link), target)
		}
		name = filepath.Join(target, name[len(link):])
	}
	return w
}

// firstLink returns the first symbolic link on the way to an absolute name, "" for none.
func firstLink(name string) string {
	for i := 1; i <= len(name); i++ {
		if i < len(name) && !os.IsPathSeparator(name[i]) {
			continue
		}
		info, err := os.Lstat(name[:i])
		if err != nil {
			return ""
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return name[:i]
		}
	}
	return ""
}

// existing returns a directory, or the nearest existing one above it.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// way returns the way to the file; an empty one for text in memory.
func (s *source) way() way {
	if s.mem {
		return way{}
	}
	return follow(s.name)
}
