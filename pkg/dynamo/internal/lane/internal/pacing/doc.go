// Package pacing decides how fast a lane may go: when its next write may leave, how many other
// replicas use its item, and how busy the item is.
//
// All of it is arithmetic on replies and times that are given. It has no clock and no lock.
package pacing
