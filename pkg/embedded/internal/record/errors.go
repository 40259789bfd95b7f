package record

import "errors"

// ErrFormat is the error of bytes that are no record of this program.
var ErrFormat = errors.New("not a record of this version")
