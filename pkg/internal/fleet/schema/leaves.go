package schema

// Leaves returns the items of a bucket, by index, that give tokens, in order. It reports false
// where a split or a merge is under way: tokens are then on their way between two items.
func Leaves(items map[int]*Bucket) (leaves []*Bucket, settled bool) {
	found := make(map[int]*Bucket, len(items))
	settled = true
	var walk func(index, level int, birth int64)
	walk = func(index, level int, birth int64) {
		b := items[index]
		if b == nil || b.Shard.Retired || b.Shard.Birth != birth {
			settled = false
			return
		}
		settled = settled && !b.Shard.Moving
		for ; level < b.Shard.Level; level *= 2 {
			walk(index+level, 2*level, b.Shard.Births[BirthSlot(2*level)])
		}
		found[index] = b
	}
	walk(0, 1, 0)
	for index := range MaxShards {
		if b := found[index]; b != nil {
			leaves = append(leaves, b)
		}
	}
	return leaves, settled
}
