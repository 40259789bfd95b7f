package migration

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// ReadOptions select a part of a table. Now is required.
type ReadOptions struct {
	Namespace string // only this one; "" = all
	As        string // another name of that one in the set; "" = the same
	Now       time.Time
	Progress  func(items int) // called after each page of items; nil = not called
}

// Read reads a table whole, and returns the version of its schema, and its content as a
// checked set. A table without namespaces is one that is called default. Deleted namespaces,
// usage and audit are left behind. The records and the balances that are not full stand in
// memory, at about 1 KB each.
//
// Errors wrap [ErrTable], or are those of the SDK; [Set.Losses] has the rest.
func Read(ctx context.Context, client Client, table string, o ReadOptions) (version string, set *Set, err error) {
	version, minor, err := schemaOf(ctx, client, table)
	if err != nil {
		return "", nil, err
	}
	r := &reader{buckets: bucket, spaces: make(map[string]*space), names: make(map[string]string), deleted: make(map[string]bool)}
	if minor < shardSchema {
		r.buckets = oldBucket
	}
	for items, err := range scan(ctx, client, table) {
		if err != nil {
			return "", nil, fmt.Errorf("reading table %s: %w", table, err)
		}
		for _, i := range items {
			r.add(i)
		}
		r.items += len(items)
		if o.Progress != nil {
			o.Progress(r.items)
		}
	}
	set, err = r.set(o)
	return version, set, err
}

// scan returns the items of a table, page by page.
func scan(ctx context.Context, client Client, table string) iter.Seq2[[]item, error] {
	return func(yield func([]item, error) bool) {
		in := &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)}
		for {
			out, err := read(ctx, client.Scan, in)
			if err == nil && len(out.LastEvaluatedKey) > 0 && reflect.DeepEqual(out.LastEvaluatedKey, in.ExclusiveStartKey) {
				err = errors.New("a page ends where it began: the endpoint does not answer as DynamoDB does")
			}
			if err != nil {
				yield(nil, err)
				return
			}
			page := make([]item, len(out.Items))
			for i := range page {
				page[i] = out.Items[i]
			}
			if !yield(page, nil) || len(out.LastEvaluatedKey) == 0 {
				return
			}
			in.ExclusiveStartKey = out.LastEvaluatedKey
		}
	}
}

// reader is a table on its way into a set.
type reader struct {
	buckets kind // of items with the buckets of this schema
	items   int
	spaces  map[string]*space // by id
	names   map[string]string // of namespaces that are not deleted, by id
	deleted map[string]bool   // namespaces, by id

	usage, audit, orphans, outdated, unknown int
	unknownKey                               [2]string // of the first item of an unknown kind
}

// space is a namespace that was read so far.
type space struct {
	records []limiter.Stored
	losses  []Loss // without the name of the namespace
	buckets map[bucketName]*state
}

type bucketName struct{ entity, resource string }

func (r *reader) space(id string) *space {
	s := r.spaces[id]
	if s == nil {
		s = &space{buckets: make(map[bucketName]*state)}
		r.spaces[id] = s
	}
	return s
}

// add sorts one item in.
func (r *reader) add(i item) {
	k := parseKey(i.text("PK"), i.text("SK"))
	switch k.kind {
	case entity:
		r.space(k.namespace).addEntity(k, i)
	case entityLimits, resourceLimits, systemLimits:
		r.space(k.namespace).addLimits(k, i)
	case bucket, oldBucket:
		if k.kind == r.buckets {
			r.space(k.namespace).addBucket(k, i)
		} else { // one of before an upgrade, that nothing reads
			r.outdated++
		}
	case registry:
		if status := i.text("status"); status == "deleted" || status == "purging" {
			r.deleted[k.namespace] = true
		} else {
			r.names[k.namespace] = i.text("namespace_name")
		}
	case usage:
		r.usage++
	case audit:
		r.audit++
	case bookkeeping:
	case unknown:
		r.unknown++
		if r.unknown == 1 {
			r.unknownKey = [2]string{i.text("PK"), i.text("SK")}
		}
	}
}

func (s *space) addEntity(k key, i item) {
	ref := limiter.EntityRef(k.entity)
	e := limiter.Entity{ID: k.entity, Name: i.text("name"), Parent: i.text("parent_id"), Cascade: i.flag("cascade")}
	if e.Name == e.ID { // which the package writes where there is none
		e.Name = ""
	}
	for _, of := range [][2]string{{"name", aText}, {"parent_id", aText}, {"cascade", aFlag}, {"metadata", aMap}} {
		if what := i.misfit(of[0], of[1]); what != "" {
			s.lose(Subject(ref), "", what)
		}
	}
	var others []string
	e.Metadata, others = i.stringMap("metadata")
	if len(others) > 0 {
		s.lose(Subject(ref), "", fmt.Sprintf("has metadata that is no text, which is left out: %.200q", others))
	}
	if e.Cascade && e.Parent == "" {
		e.Cascade = false // it means nothing
	}
	s.records = append(s.records, limiter.Stored{Ref: ref, Record: limiter.Record{Entity: &e}})
}

func (s *space) addLimits(k key, i item) {
	ref := k.limitsRef()
	subject := Subject(ref)
	for _, what := range flagsOf(i) {
		s.lose(subject, "", what)
	}
	limits, problems := limitsOf(i)
	for _, p := range problems {
		s.lose(subject, p.limit, p.what)
	}
	r := limiter.Record{}
	if limits.Len() > 0 {
		r.Limits, r.Alone = limits, k.kind != systemLimits // the first level with limits decides there
	}
	if k.kind == systemLimits {
		policy, what := policyOf(i)
		r.OnUnavailable = policy
		if what != "" {
			s.lose(subject, "", what)
		}
	}
	if !r.Empty() {
		s.records = append(s.records, limiter.Stored{Ref: ref, Record: r})
	}
}

func (s *space) addBucket(k key, i item) {
	name := bucketName{k.entity, k.resource}
	if s.buckets[name] == nil {
		s.buckets[name] = new(state)
	}
	for _, p := range s.buckets[name].add(i) {
		s.lose("the balance of "+Subject(limiter.EntityLimitsRef(k.entity, k.resource)), p.limit, p.what)
	}
}

// lose notes a loss of a subject, or of one of its limits.
func (s *space) lose(subject, limit, what string) {
	if limit != "" {
		subject = fmt.Sprintf("limit %.100q of %s", limit, subject)
	}
	s.losses = append(s.losses, Loss{Subject: subject, Problem: what})
}
