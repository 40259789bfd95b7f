package fleetsim_test

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// features are the events that can happen in a run.
type features struct {
	leases, cascade, two, large, slow bool

	lost, tails, throttle, cut, outage, far    bool
	pause, suspend, freeze, steps, skew, drift bool
	crash, copies                              bool
	refund, charge, looks, leave, impatient    bool
	adopt, restless, shards, expire            bool
	rollout, settle, adjust                    bool
	few, long, parks, brief                    bool
}

// feature is a row of the table of features: its name for the flags, how many of a hundred
// runs have it, and where it is.
type feature struct {
	name    string
	percent int
	at      func(*features) *bool
}

func featureTable() []feature {
	return []feature{
		{"leases", 80, func(f *features) *bool { return &f.leases }},
		{"cascade", 45, func(f *features) *bool { return &f.cascade }},     // calls take from a bucket and from its parent's
		{"two", 25, func(f *features) *bool { return &f.two }},             // limits
		{"large", 40, func(f *features) *bool { return &f.large }},         // some calls take half a bucket and more
		{"slow", 25, func(f *features) *bool { return &f.slow }},           // limits refill next to nothing, or never, so that no refill excuses an excess
		{"lost", 55, func(f *features) *bool { return &f.lost }},           // messages and replies; or they come late, or twice
		{"tails", 50, func(f *features) *bool { return &f.tails }},         // a message now and then takes very long
		{"throttle", 25, func(f *features) *bool { return &f.throttle }},   //
		{"cut", 20, func(f *features) *bool { return &f.cut }},             // replicas are cut off for a while
		{"outage", 10, func(f *features) *bool { return &f.outage }},       // DynamoDB answers nothing for a while
		{"far", 10, func(f *features) *bool { return &f.far }},             // messages take forty milliseconds
		{"pause", 30, func(f *features) *bool { return &f.pause }},         // processes stop for a while
		{"suspend", 20, func(f *features) *bool { return &f.suspend }},     // machines sleep: their monotonic clocks stand still
		{"freeze", 8, func(f *features) *bool { return &f.freeze }},        // machines are paused as a whole, with both clocks
		{"steps", 15, func(f *features) *bool { return &f.steps }},         // the time of machines is set, ahead and back
		{"skew", 30, func(f *features) *bool { return &f.skew }},           // clocks differ on the wall
		{"drift", 25, func(f *features) *bool { return &f.drift }},         // and those that are monotonic run at different speeds
		{"crash", 30, func(f *features) *bool { return &f.crash }},         //
		{"copies", 12, func(f *features) *bool { return &f.copies }},       // processes have the names and numbers of others
		{"refund", 40, func(f *features) *bool { return &f.refund }},       //
		{"charge", 30, func(f *features) *bool { return &f.charge }},       //
		{"looks", 30, func(f *features) *bool { return &f.looks }},         //
		{"leave", 20, func(f *features) *bool { return &f.leave }},         // callers cancel
		{"impatient", 75, func(f *features) *bool { return &f.impatient }}, // all callers wait for 15 ms, as by default
		{"adopt", 20, func(f *features) *bool { return &f.adopt }},         // limits change
		{"shards", 25, func(f *features) *bool { return &f.shards }},       // shards are split and merged, by load
		{"expire", 10, func(f *features) *bool { return &f.expire }},       // there are hours without a call
		{"parks", 10, func(f *features) *bool { return &f.parks }},         // replicas that are cut off keep still for about a lease's term, and then ask a lot
		{"restless", 0, func(f *features) *bool { return &f.restless }},    // limits change all the time
		{"rollout", 15, func(f *features) *bool { return &f.rollout }},     // processes end cleanly while others start in their place
		{"settle", 20, func(f *features) *bool { return &f.settle }},       // takes are settled once, by one process or by two at a time
		{"adjust", 20, func(f *features) *bool { return &f.adjust }},       // balances are set, reset, topped up and lowered
		{"few", 30, func(f *features) *bool { return &f.few }},             // calls
		{"long", 15, func(f *features) *bool { return &f.long }},           // time, and several replicas
		{"brief", 40, func(f *features) *bool { return &f.brief }},         // writes are answered without the item, where its sender knows it
	}
}

// drawFeatures draws the features of a run. Those of only are on and no others, if it is not
// empty; those of without are off.
func drawFeatures(r *rand.Rand, only, without string) features {
	var f features
	names := func(list string) []string {
		return slices.DeleteFunc(strings.Split(list, ","), func(s string) bool { return s == "" })
	}
	for _, row := range featureTable() {
		on := r.IntN(100) < row.percent
		if list := names(only); len(list) > 0 {
			on = slices.Contains(list, row.name)
		}
		*row.at(&f) = on && !slices.Contains(names(without), row.name)
	}
	return f
}

// String returns the names of the features.
func (f *features) String() string {
	var on []string
	for _, row := range featureTable() {
		if *row.at(f) {
			on = append(on, row.name)
		}
	}
	return strings.Join(on, ",")
}
