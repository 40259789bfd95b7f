//go:build torture

package bounds_test

import "time"

// floodTime is how long an attack lasts.
const floodTime = time.Minute

// floodConns returns how many connections an attack has.
func floodConns() []int { return []int{16, 64, 500} }
