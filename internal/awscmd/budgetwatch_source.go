package awscmd

import (
	"context"
	"strings"

	"github.com/ratelimit/ratelimit/config"
)

// BudgetSource is where a configuration is.
type BudgetSource interface {
	// Read returns the configuration and its tag; nil where it is still the one of the tag seen. "" is
	// the tag of none. An error has no secret of the configuration.
	Read(ctx context.Context, seen string) (cfg *config.Config, tag string, err error)
}

// OpenBudgetSource returns the configuration in an object of S3, such as s3://bucket/ratelimit.yaml, or in a file. It
// reads neither. An error wraps limiter.ErrInvalid.
func OpenBudgetSource(ctx context.Context, place string) (BudgetSource, error) {
	if !strings.HasPrefix(place, "s3:") {
		return file(place), nil
	}
	at, err := parseObject(place)
	if err != nil {
		return nil, err
	}
	o, err := openObject(ctx, at)
	if err != nil {
		return nil, err
	}
	return o, nil
}

// Read implements BudgetSource. The tag is the ETag.
func (o *s3Object) Read(ctx context.Context, seen string) (*config.Config, string, error) {
	text, tag, err := o.Get(ctx, seen)
	if err != nil || text == nil {
		return nil, seen, err
	}
	cfg, err := config.ParseBudgets(o.at.String(), text)
	if err != nil {
		return nil, "", err
	}
	return cfg, tag, nil
}

// file is a configuration in a file. Its tag is the hash of all that was read.
type file string

func (f file) Read(_ context.Context, seen string) (*config.Config, string, error) {
	cfg, err := config.LoadBudgets(string(f))
	if err != nil || cfg.Hash == seen {
		return nil, seen, err
	}
	return cfg, cfg.Hash, nil
}
