// Package migrate holds `ratelimit migrate` against tables that zae-limiter made on DynamoDB
// Local: the commands of docs/how-to/migrate-from-zae-limiter.md, and runs that are killed.
// `go test ./test/migrate -update` writes the output of this run into the page.
package migrate
