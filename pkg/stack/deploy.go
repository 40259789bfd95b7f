package stack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Deploy creates a stack, and prepares its table for replicas that may only take: it puts the
// schema version, and registers the default namespace and those of the options. Policies of
// namespaces and deletion protection follow in an update: CloudFormation could not remove a
// protected table again. So a stack that cannot be created leaves nothing behind.
//
// Errors wrap [ErrInvalid], [ErrExists] or [ErrFailed], or are those of AWS.
func (m *Manager) Deploy(ctx context.Context, o Options) (Info, error) {
	if _, err := deployable(o); err != nil {
		return Info{}, err
	}
	if _, err := m.Get(ctx, o.Name); err == nil {
		return Info{}, errExists(o.Name)
	} else if !errors.Is(err, ErrNotFound) {
		return Info{}, err
	}
	if err := m.tableFor(ctx, &o); err != nil {
		return Info{}, err
	}
	first := o
	first.DeletionProtection = false
	if err := m.create(ctx, first); err != nil {
		return Info{}, err
	}
	return m.completed(ctx, first, o)
}

// create creates a stack.
func (m *Manager) create(ctx context.Context, o Options) error {
	body, err := deployable(o)
	if err != nil {
		return err
	}
	out, err := m.cfg.API.CreateStack(ctx, &cloudformation.CreateStackInput{
		StackName: &o.Name, TemplateBody: &body, Tags: m.tags(o),
		Capabilities:       []types.Capability{types.CapabilityCapabilityNamedIam},
		OnFailure:          types.OnFailureDelete,
		ClientRequestToken: aws.String(rand.Text()),
	})
	if err != nil {
		return stackError(o.Name, err)
	}
	f, err := m.follow(ctx, "")
	if err != nil {
		return err
	}
	f.id = aws.ToString(out.StackId)
	return f.finish(ctx, o.Name, "CREATE_COMPLETE")
}

// Update changes the options of a stack by change, renders its template anew and prepares its
// table as Deploy does. A stack that has all that already stays as it is.
//
// Errors wrap [ErrInvalid], [ErrNotFound] or [ErrFailed], or are those of change and of AWS.
func (m *Manager) Update(ctx context.Context, name string, change func(*Options) error) (Info, error) {
	o, err := m.Options(ctx, name)
	if err != nil {
		return Info{}, err
	}
	existing := o.ExistingTable
	if err := change(&o); err != nil {
		return Info{}, err
	}
	switch {
	case o.Name != name:
		return Info{}, fmt.Errorf("%w: a stack cannot be renamed, from %s to %s", ErrInvalid, name, o.Name)
	case o.ExistingTable != existing:
		return Info{}, fmt.Errorf("%w: existing_table counts at deployment only: an update with it would delete or replace the table of stack %s", ErrInvalid, name)
	case existing:
		err = errors.Join(o.Check(), m.tableFor(ctx, &o))
	}
	if err != nil {
		return Info{}, err
	}
	if err := m.put(ctx, o); err != nil {
		return Info{}, err
	}
	return m.completed(ctx, o, o)
}

// completed prepares the table, brings the stack to the wanted options, with policies for
// namespaces that are new, and returns it.
func (m *Manager) completed(ctx context.Context, has, o Options) (Info, error) {
	names := make([]string, 1, 1+len(o.IAM.Namespaces))
	names[0] = limiter.DefaultNamespace
	for _, n := range o.IAM.Namespaces {
		names = append(names, n.Name)
	}
	prepared, err := Prepare(ctx, m.cfg.Table, o.Name, names, m.cfg.Now())
	if err != nil {
		err = fmt.Errorf("the stack is complete, and its table could not be prepared: %w", err)
	} else {
		o.IAM.Namespaces = prepared[1:]
	}
	if has.DeletionProtection != o.DeletionProtection || !slices.Equal(has.IAM.Namespaces, o.IAM.Namespaces) {
		err = errors.Join(err, m.put(ctx, o))
	}
	if err != nil {
		return Info{}, err
	}
	return m.Get(ctx, o.Name)
}

// put updates a stack to options.
func (m *Manager) put(ctx context.Context, o Options) error {
	body, err := deployable(o)
	if err != nil {
		return err
	}
	before, err := m.Get(ctx, o.Name)
	if err != nil {
		return err
	}
	f, err := m.follow(ctx, before.ID)
	if err != nil {
		return err
	}
	_, err = m.cfg.API.UpdateStack(ctx, &cloudformation.UpdateStackInput{
		StackName: &o.Name, TemplateBody: &body, Tags: m.tags(o),
		Capabilities:       []types.Capability{types.CapabilityCapabilityNamedIam},
		ClientRequestToken: aws.String(rand.Text()),
	})
	if unchanged(err) {
		return nil
	}
	if err != nil {
		return stackError(o.Name, err)
	}
	return f.finish(ctx, o.Name, "UPDATE_COMPLETE")
}

// deployable returns the template of options that name all that it needs.
func deployable(o Options) (string, error) {
	if o.Aggregator.On && o.Aggregator.Code.Key == "" {
		return "", fmt.Errorf("%w: aggregator.on needs aggregator.code, the bucket and the key of the function's artifact", ErrInvalid)
	}
	template, err := Render(o)
	if err != nil {
		return "", err
	}
	body, err := template.JSON()
	return string(body), err
}

func (m *Manager) tags(o Options) []types.Tag {
	all := o.allTags(m.cfg.Version)
	tags := make([]types.Tag, 0, len(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		tags = append(tags, types.Tag{Key: aws.String(key), Value: aws.String(all[key])})
	}
	return tags
}
