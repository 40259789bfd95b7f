package embedded

import "errors"

// errFormat is the error of bytes that are no record of this program.
var errFormat = errors.New("not a record of this version")
