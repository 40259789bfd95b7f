package limiter

// BucketOf returns the bucket that a status of the decision is about, until the decision is used
// again. It is false for a status that the decision does not have.
func (d *Decision) BucketOf(s *LimitStatus) (BucketKey, bool) {
	if s.Take < 0 || s.Take >= len(d.scratch.bases) {
		return BucketKey{}, false
	}
	for i := d.scratch.bases[s.Take]; i >= 0; i = d.scratch.levels[i].above {
		lv := &d.scratch.levels[i]
		if lv.depth != s.Level {
			continue
		}
		if b, _ := lv.bucketOf(s.Limit.Name); b.op >= 0 {
			return d.scratch.ops[b.op].Bucket, true
		}
	}
	return BucketKey{}, false
}
