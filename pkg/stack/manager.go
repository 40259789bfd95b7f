package stack

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Config configures a [Manager].
type Config struct {
	API     API
	Table   dynamo.Client    // in the same region and account
	Version string           // of the program, for the stack's tags; at most 256 characters
	Now     func() time.Time // nil = time.Now
	// Interval is between two looks at a stack that changes; 0 = 2 s.
	Interval time.Duration
	// Progress is called for each event of a stack that changes; nil = not told.
	Progress func(Event)
}

// Manager creates, changes and deletes stacks. It is safe for concurrent use if
// [Config.Progress] is.
type Manager struct{ cfg Config }

// NewManager returns a manager.
func NewManager(cfg Config) *Manager {
	cfg.Interval = cmp.Or(cfg.Interval, 2*time.Second)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Manager{cfg}
}

// pause waits for the interval, or until ctx ends.
func (m *Manager) pause(ctx context.Context) error {
	timer := time.NewTimer(m.cfg.Interval)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Deploy creates a stack, and prepares its table for replicas that may only take: it puts the
// schema version, and registers the default namespace and those of the options. Policies of
// namespaces follow in an update. A stack that cannot be created leaves nothing behind.
//
// Errors wrap [ErrInvalid], [ErrExists] or [ErrFailed], or are those of AWS.
func (m *Manager) Deploy(ctx context.Context, o Options) (Info, error) {
	body, err := deployable(o)
	if err != nil {
		return Info{}, err
	}
	out, err := m.cfg.API.CreateStack(ctx, &cloudformation.CreateStackInput{
		StackName: &o.Name, TemplateBody: &body, Tags: m.tags(o),
		Capabilities:       []types.Capability{types.CapabilityCapabilityNamedIam},
		OnFailure:          types.OnFailureDelete,
		ClientRequestToken: aws.String(rand.Text()),
	})
	if err != nil {
		return Info{}, stackError(o.Name, err)
	}
	f, err := m.follow(ctx, "")
	if err == nil {
		f.id = aws.ToString(out.StackId)
		err = f.finish(ctx, o.Name, "CREATE_COMPLETE")
	}
	if err != nil {
		return Info{}, err
	}
	return m.completed(ctx, o)
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
	if err := change(&o); err != nil {
		return Info{}, err
	}
	if o.Name != name {
		return Info{}, fmt.Errorf("%w: a stack cannot be renamed, from %s to %s", ErrInvalid, name, o.Name)
	}
	if err := m.put(ctx, o); err != nil {
		return Info{}, err
	}
	return m.completed(ctx, o)
}

// completed prepares the table, gives namespaces that are new their policies, and returns the
// stack.
func (m *Manager) completed(ctx context.Context, o Options) (Info, error) {
	names := make([]string, 1, 1+len(o.IAM.Namespaces))
	names[0] = limiter.DefaultNamespace
	for _, n := range o.IAM.Namespaces {
		names = append(names, n.Name)
	}
	prepared, err := Prepare(ctx, m.cfg.Table, o.Name, names, m.cfg.Now())
	if err != nil {
		return Info{}, fmt.Errorf("the stack is complete, and its table could not be prepared: %w", err)
	}
	if found := prepared[1:]; !slices.Equal(found, o.IAM.Namespaces) {
		o.IAM.Namespaces = found
		if err := m.put(ctx, o); err != nil {
			return Info{}, err
		}
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

// Delete deletes a stack. A stack with deletion protection needs keepData, and leaves its
// table and its archive; for any other keepData is refused, since all would go.
//
// Errors wrap [ErrInvalid], [ErrNotFound] or [ErrFailed], or are those of AWS.
func (m *Manager) Delete(ctx context.Context, name string, keepData bool) error {
	o, err := m.Options(ctx, name)
	if err != nil {
		return err
	}
	switch {
	case o.DeletionProtection && !keepData:
		return fmt.Errorf("%w: stack %s has deletion protection: delete it with its data kept, or update it without protection first", ErrInvalid, name)
	case !o.DeletionProtection && keepData:
		return fmt.Errorf("%w: stack %s has no deletion protection, and its data would go with it: update it with protection first", ErrInvalid, name)
	}
	info, err := m.Get(ctx, name)
	if err != nil {
		return err
	}
	f, err := m.follow(ctx, info.ID)
	if err != nil {
		return err
	}
	_, err = m.cfg.API.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: &info.ID, ClientRequestToken: aws.String(rand.Text())})
	if err != nil {
		return stackError(name, err)
	}
	err = f.finish(ctx, name, "DELETE_COMPLETE")
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
