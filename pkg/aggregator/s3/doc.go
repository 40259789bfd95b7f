// Package s3 keeps the objects of an archive in a bucket of S3, and reads an object again when it
// has changed.
//
// Region, credentials and endpoint are those of the environment, as for every program that uses
// the SDK of AWS.
package s3
