package migration

import (
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Set is the content of another system.
type Set struct {
	Namespaces []Namespace
	Losses     []Loss  // content that no store can hold, or holds only in part
	Ignored    []Count // items of kinds that a migration leaves behind
}

// Namespace is one namespace of a set.
type Namespace struct {
	Name     string
	Records  []limiter.Stored // entities and limits, each once
	Balances []Balance        // of buckets that are not full
}

// Balance is the state of one bucket, of an entity for a resource.
type Balance struct {
	Entity, Resource string
	Limits           []LimitBalance
}

// LimitBalance is the state of one limit of a bucket. Params are those of the other system.
type LimitBalance struct {
	Name   string
	Params tokenbucket.Params
	Bucket tokenbucket.Bucket
}

// Loss is content that a store cannot take over.
type Loss struct {
	Namespace string // "" = the loss is of a namespace as a whole
	Subject   string // such as: limit rpm of resource "gpt-4"
	Problem   string // the end of a sentence about the subject's fate
}

// String returns the loss as a line of a report.
func (l Loss) String() string {
	if l.Namespace == "" {
		return l.Subject + " " + l.Problem
	}
	return fmt.Sprintf("namespace %.100q, %s %s", l.Namespace, l.Subject, l.Problem)
}

// Count is a number of items of a kind.
type Count struct {
	Kind string // in the plural
	N    int
}

// Subject names a record for people.
func Subject(ref limiter.Ref) string {
	switch ref.Kind {
	case limiter.RefEntity:
		return fmt.Sprintf("entity %.100q", ref.Entity)
	case limiter.RefEntityLimits:
		return fmt.Sprintf("entity %.100q for resource %.100q", ref.Entity, ref.Resource)
	case limiter.RefResourceLimits:
		return fmt.Sprintf("resource %.100q", ref.Resource)
	case limiter.RefSystemLimits:
	}
	return "the system"
}
