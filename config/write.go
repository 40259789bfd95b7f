package config

import (
	"errors"
	"os"
	"path/filepath"
)

// ReplaceFile writes a file that its user alone can read. A crash leaves the old one or the new one. Its directory
// must be there.
func ReplaceFile(name string, text []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = temp.Write(text)
	if err == nil {
		err = temp.Sync()
	}
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}
