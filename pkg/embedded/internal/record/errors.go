package record

import "errors"

// ErrFormat says that a record is not as this program writes it.
var ErrFormat = errors.New("not a record of this version")
