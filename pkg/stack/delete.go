package stack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
)

// Delete deletes a stack, and returns the resources that are left: its archive, its table
// if that is protected or was there before, and nothing else. A stack with deletion
// protection needs keepData. For one whose table would go keepData is refused.
//
// Errors wrap [ErrInvalid], [ErrNotFound] or [ErrFailed], or are those of AWS.
func (m *Manager) Delete(ctx context.Context, name string, keepData bool) ([]string, error) {
	o, err := m.Options(ctx, name)
	if err != nil {
		return nil, err
	}
	switch {
	case o.DeletionProtection && !keepData:
		return nil, fmt.Errorf("%w: stack %s has deletion protection: delete it with its data kept, or update it without protection first", ErrInvalid, name)
	case !o.DeletionProtection && !o.ExistingTable && keepData:
		return nil, fmt.Errorf("%w: stack %s has no deletion protection, and its data would go with it: update it with protection first", ErrInvalid, name)
	}
	info, err := m.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	f, err := m.follow(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	_, err = m.cfg.API.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: &info.ID, ClientRequestToken: aws.String(rand.Text())})
	if err != nil {
		return nil, stackError(name, err)
	}
	if err := f.finish(ctx, name, "DELETE_COMPLETE"); err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	return left(o, info), nil
}

// left returns the resources that a stack leaves.
func left(o Options, info Info) []string {
	var kept []string
	if o.DeletionProtection || o.ExistingTable {
		kept = append(kept, "table "+o.Name)
	}
	if bucket := info.Outputs[outputArchive]; bucket != "" {
		kept = append(kept, "bucket "+bucket)
	}
	return kept
}
