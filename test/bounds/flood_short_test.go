//go:build !torture

package bounds_test

import "time"

// floodTime is how long an attack lasts.
const floodTime = 10 * time.Second

// floodConns returns how many connections an attack has.
func floodConns() []int { return []int{64, 500} }
