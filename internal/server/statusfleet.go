package server

import (
	"cmp"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
)

// settleTime is how long replicas may have different configurations: a new one reaches them one by one.
const settleTime = 5 * time.Minute

// fleetProblems returns the problems of the other replicas, and of the aggregator.
func fleetProblems(f *api.Fleet) (all []api.StatusProblem) {
	here := &f.Replicas[0] // the one that answers
	for i := range f.Replicas[1:] {
		all = append(all, replicaProblems(f.Time, here, &f.Replicas[1+i])...)
	}
	return append(all, aggregatorProblems(f)...)
}

// replicaProblems returns the problems of another replica, next to the one that answers.
func replicaProblems(now time.Time, here, r *api.Replica) (all []api.StatusProblem) {
	name := fmt.Sprintf("replica %s on %s", r.ID, cmp.Or(r.Host, "an unknown host"))
	if !r.Ready {
		all = append(all, api.StatusProblem{
			What: name + " is not ready: " + cmp.Or(r.Reason, "it has just started"),
			Do:   "ratelimit status of that replica, and the last lines of its log", Section: api.SectionReplica,
		})
	}
	if c := r.Configuration; c.Error != "" {
		all = append(all, api.StatusProblem{
			What: name + " refused newer files of the configuration: " + c.Error, Since: c.ErrorAt,
			Do: "ratelimit check --config FILE there shows every mistake", Section: api.SectionReplica,
		})
	}
	newest := r.Configuration.LoadedAt
	if here.Configuration.LoadedAt.After(newest) {
		newest = here.Configuration.LoadedAt
	}
	if r.Configuration.Hash != here.Configuration.Hash && now.Sub(newest) > settleTime {
		all = append(all, api.StatusProblem{
			What: name + " has another configuration in force than this one", Since: newest,
			Do: "compare the hash and time of each replica at /readyz, and roll the files out again", Section: api.SectionEnforced,
		})
	}
	if st := r.Store; st != nil && st.State != dynamo.Available.String() {
		all = append(all, api.StatusProblem{
			What: fmt.Sprintf("the store %s is %s for %s: the policy %s decides there", st.Type, st.State, name, st.Policy), Since: st.Since,
			Do: "its network, its credentials, its clock", Section: api.SectionOutage,
		})
	}
	return all
}

// aggregatorProblems returns those of the aggregator.
func aggregatorProblems(f *api.Fleet) []api.StatusProblem {
	a := f.Aggregator
	if a == nil || a.Do == "" {
		return nil
	}
	return []api.StatusProblem{{What: "aggregator: " + a.Text, Since: a.Seen, Do: a.Do, Section: api.SectionUsage}}
}
