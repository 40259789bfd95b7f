package dynamo

import (
	"context"
	"fmt"
	"iter"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
)

// items runs a query to its end, page by page, unless the caller stops it. After
// an error, which is the last that it yields, the items are incomplete.
func items(ctx context.Context, client Client, q *dynamodb.QueryInput) iter.Seq2[map[string]types.AttributeValue, error] {
	return func(yield func(map[string]types.AttributeValue, error) bool) {
		page := *q
		for try := 0; ; {
			out, err := client.Query(ctx, &page)
			if err != nil {
				if err = awsdb.TranslateRead(err); !awsdb.RetryRead(ctx, awsdb.Goroutines{}, &try, err) {
					yield(nil, fmt.Errorf("query of table %s: %w", *q.TableName, err))
					return
				}
				continue
			}
			for _, item := range out.Items {
				if !yield(item, nil) {
					return
				}
			}
			if len(out.LastEvaluatedKey) == 0 {
				return
			}
			page.ExclusiveStartKey, try = out.LastEvaluatedKey, 0
		}
	}
}
