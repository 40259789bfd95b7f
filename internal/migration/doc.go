// Package migration brings entities, limits and balances from another system into a store.
//
// A reader of the other system, such as package zaelimiter, makes a [Set]. [Set.Check]
// takes out of it the records that no store can hold. [Run] then writes it. A run only
// makes records that are missing, and only lowers balances. So an interrupted run is made
// again from the beginning, and a run after a whole one changes nothing.
package migration
