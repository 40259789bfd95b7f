// Package iamtest checks calls of DynamoDB against policies of IAM, for tests. It has the
// part of IAM that the policies of this module use, and fails for any other: an unknown
// condition does not hold.
//
//   - [FromTemplate] reads a policy of a template of CloudFormation.
//   - [Accesses] returns the permissions that a call needs.
//   - [Guard] stands in a proxy before DynamoDB Local, and refuses as DynamoDB does.
package iamtest
