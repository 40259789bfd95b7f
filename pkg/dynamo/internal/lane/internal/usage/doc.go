// Package usage keeps the consumption that a lease serves in memory until a write counts it in the
// item. Each lease write reports the consumption since the last report that was applied. The rest of
// a lease that is over goes into a request of its own, which any write of the item can carry out.
//
// A report counts once. Where a lease write has no reply, an image of the item shows its outcome. Until
// then its report is neither dropped nor made again.
package usage
