package limiter

import "strings"

// longest is how many bytes of a name are compared.
const longest = 64

// ClosestName returns the known name that differs least from the given one, in any case of
// letters; "" when none is close: one edit for three bytes, at most three.
func ClosestName(name string, known []string) string {
	best, distance := "", 1+max(1, min(3, len(name)/3))
	name = folded(name)
	for _, k := range known {
		if n := edits(name, folded(k)); n < distance {
			best, distance = k, n
		}
	}
	return best
}

// Misspelled returns the known name of which a name is probably a misspelling, or "": it differs by one
// edit or by the case of letters, and not in digits alone. gpt-5 is no misspelling of gpt-4.
func Misspelled(name string, known []string) string {
	for _, k := range known {
		if k != name && edits(folded(name), folded(k)) <= 1 && withoutDigits(name) != withoutDigits(k) {
			return k
		}
	}
	return ""
}

func withoutDigits(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, name)
}

// folded returns the part of a name that is compared, in one case of letters. The name
// is cut first: a name from a request can have a megabyte.
func folded(name string) string { return strings.ToLower(name[:min(len(name), longest)]) }

// edits is the number of edits that turn a into b. An edit inserts, deletes or
// replaces a byte, or swaps it with the next. At most 64 bytes of each count.
func edits(a, b string) int {
	a, b = a[:min(len(a), longest)], b[:min(len(b), longest)]
	var rows [3][longest + 1]int // the row before last, the last, this
	for j := range len(b) + 1 {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		rows[2][0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[2][j] = min(rows[1][j]+1, rows[2][j-1]+1, rows[1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[2][j] = min(rows[2][j], rows[0][j-2]+1)
			}
		}
		rows[0], rows[1] = rows[1], rows[2]
	}
	return rows[1][len(b)]
}
