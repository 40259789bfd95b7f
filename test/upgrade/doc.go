// Package upgrade has tests of a fleet that goes from one version of the program to the next:
// programs of both versions decide on one table of DynamoDB Local.
//
//	go test ./test/upgrade -v
//
// testdata/version1.tar.gz is the source of the program before the items of buckets came into
// their present form, without tests. The tests build it.
package upgrade
