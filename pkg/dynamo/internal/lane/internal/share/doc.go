// Package share gives a replica its part of the tokens of an item where they are short. Replicas that
// each take all tokens that they see would refuse each other's writes.
//
// All of it is arithmetic on a state that is given. It has no clock and no lock.
package share
