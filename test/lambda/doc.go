// Package lambda checks the archives of the aggregator for AWS Lambda that `make lambda` has built:
// `make check-lambda` runs it.
package lambda
