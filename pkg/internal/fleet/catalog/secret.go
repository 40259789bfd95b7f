package catalog

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// sealingLabel separates the keys of secrets from others that are derived from the id of a table.
// It is part of the format.
const sealingLabel = "ratelimit secret of a table\x00"

// Secret implements limiter.Settlements by one conditional write, whose refusal brings the
// secret that is there. One message may take all of the time that a change may take.
//
// The item has the secret encrypted, so that no record of the table's stream shows it. The key is
// derived from the table's id, which DescribeTable returns, and which no item or record has. A
// secret that was encrypted in another table, as in the copy of a table, is replaced.
func (s *Settlements) Secret(ctx context.Context, name string, candidate []byte) ([]byte, error) {
	if err := limiter.CheckSecret(name, candidate); err != nil {
		return nil, err
	}
	k := schema.SecretKey(name)
	secret, err := s.secret(ctx, k, candidate)
	if err != nil {
		return nil, fmt.Errorf("secret %s, item %v of table %s: %w", name, k, s.cfg.Table, err)
	}
	return secret, nil
}

// secretTries bounds how often a secret is replaced, as others may replace it at the same time.
const secretTries = 3

func (s *Settlements) secret(ctx context.Context, k schema.Key, candidate []byte) ([]byte, error) {
	aead, err := s.table.sealing(ctx, k)
	if err != nil {
		return nil, err
	}
	bound := []byte(k.String())
	item := schema.SecretItem(k, aead.Seal(nil, nil, candidate, bound), s.cfg.Now()) // #nosec G407 -- the cipher draws its nonce
	put := schema.PutNew(item)
	for range secretTries {
		made, found, err := s.table.claim(ctx, put, ChangeTimeout)
		if err != nil {
			return nil, err
		}
		if made {
			return slices.Clone(candidate), nil
		}
		sealed, err := schema.ParseSecret(s.cfg.Table, k, found)
		if err != nil {
			return nil, err
		}
		secret, err := aead.Open(nil, nil, sealed, bound)
		if err == nil {
			return secret, nil
		}
		put = schema.ReplaceSecret(item, sealed)
	}
	return nil, fmt.Errorf("%w: other processes replace it", limiter.ErrUnavailable)
}

// sealing returns the cipher of the secrets with a key in the table.
func (t *table) sealing(ctx context.Context, k schema.Key) (cipher.AEAD, error) {
	id, err := t.id(ctx)
	if err != nil {
		return nil, err
	}
	derived, err := hkdf.Key(sha256.New, []byte(id), nil, sealingLabel+k.String(), sha256.Size)
	if err != nil {
		return nil, err // cannot be: the length is legal
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err // cannot be: the key is one of AES-256
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// id returns the id of the table. Where a substitute of DynamoDB gives tables none, it is made of the name and the
// time of creation, and is no secret.
func (t *table) id(ctx context.Context) (string, error) {
	for try := 0; ; {
		out, err := t.items.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.name})
		if err == nil {
			d := out.Table
			if id := aws.ToString(d.TableId); id != "" {
				return id, nil
			}
			return aws.ToString(d.TableArn) + " " + aws.ToTime(d.CreationDateTime).UTC().String(), nil
		}
		if err = awsdb.TranslateRead(err); !awsdb.RetryRead(ctx, t.loop, &try, err) {
			return "", fmt.Errorf("the id of the table: %w", err)
		}
	}
}
