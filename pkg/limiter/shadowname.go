package limiter

import "strings"

// A limit whose name ends in ".shadow" is tried beside the limit of the name before it: rpm.shadow beside
// rpm. It denies nothing. Its levels merge by name, as those of all limits do.

const shadowSuffix = ".shadow"

// TriedBeside returns the name of the limit that a limit with this name is tried beside; "" = the limit is in
// force.
func TriedBeside(name string) string {
	if of, shadow := strings.CutSuffix(name, shadowSuffix); shadow {
		return of
	}
	return ""
}

// ShadowName returns the name of the limit that is tried beside a limit.
func ShadowName(limit string) string { return limit + shadowSuffix }
