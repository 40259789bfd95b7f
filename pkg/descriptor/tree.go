package descriptor

import "time"

const (
	// treeLimit is the name of limits that have none in an envoyproxy/ratelimit file.
	treeLimit = "requests"
	// treeOverride is the name of the rule for limits from descriptors.
	treeOverride = "override"
	// treeLimits is the LimitsOf of the takes of a tree. The entries that lead to a limit name its
	// bucket.
	treeLimits = "descriptors"
)

// tree is the descriptors of an envoyproxy/ratelimit file. The entries of a descriptor are followed
// in their order, one level each. An exact value goes before the first pattern that matches, which
// goes before a key without a value. There is no backtracking, and the last entry must end at a
// limit.
type tree struct {
	root     level
	override *Rule // for a descriptor with a limit of its own
	overdraw Overdraw
}

// level is the descriptors below one of them.
type level struct {
	exact    map[Entry]*branch
	patterns map[string][]patternBranch // by key, in the order of the file
	any      map[string]*branch         // by key
}

// branch is one descriptor of the file.
type branch struct {
	rule *Rule // nil when it has no limit, only descriptors below it
	next level
}

type patternBranch struct {
	pattern pattern
	branch  *branch
}

// leaf is the state of a rule of a tree, beyond that of other rules.
type leaf struct {
	way      string   // the way to it, which is unique
	shared   []string // for each level the pattern whose values share a bucket, or ""
	blocked  bool     // admits nothing
	free     bool     // it has no limit in the file, not even an unlimited one
	quoted   Quoted
	replaces []string
	quota    bool
}

// Quoted is a limit as an envoyproxy/ratelimit file has it.
type Quoted struct {
	Name            string // in answers, and for the replaces of others; "" = none
	RequestsPerUnit uint32
	Unit            time.Duration  // 1 second to 365 days; 0 = it is no such limit
	Metadata        map[string]any // of the file, in the types of encoding/json; nil = none
	Quota, Shared   bool           // quota_mode; all values of a pattern share the limit
	Replaces        []string       // names of limits that do not count beside it
	Keys            []string       // of its levels, the first one first: KEY, or KEY_VALUE with the value of the file
}

// Quote returns the limit of a rule of an envoyproxy/ratelimit file, and whether the rule is of such a file. Unit is 0
// for a rule without a limit, and for the one for limits that descriptors bring.
func Quote(r *Rule) (Quoted, bool) {
	if r == nil || r.leaf == nil {
		return Quoted{}, false
	}
	return r.leaf.quoted, true
}

// walk returns the rule that the entries lead to; nil when there is none.
func (t *tree) walk(entries []Entry) *Rule {
	next := &t.root
	for i := range entries {
		b := next.find(&entries[i])
		if b == nil {
			return nil
		}
		if i == len(entries)-1 {
			return b.rule
		}
		next = &b.next
	}
	return nil
}

func (l *level) find(e *Entry) *branch {
	if b := l.exact[*e]; b != nil {
		return b
	}
	for i := range l.patterns[e.Key] {
		if p := &l.patterns[e.Key][i]; p.pattern.matches(e.Value) {
			return p.branch
		}
	}
	return l.any[e.Key]
}
