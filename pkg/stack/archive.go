package stack

// logicalArchive is the logical name of the bucket of expired audit events.
const logicalArchive = "AuditArchive"

// archivePrefix is where the audit events are in the bucket.
const archivePrefix = "audit"

// outputArchive names the bucket among the outputs of a stack.
const outputArchive = "AuditArchiveBucket"

// addArchive adds the bucket for audit events that have expired. It is private, encrypted
// and reached over TLS only. It outlives the stack with its policy: CloudFormation can delete no
// bucket with objects.
func (t *builder) addArchive() {
	bucket := resource("AWS::S3::Bucket", object{
		"PublicAccessBlockConfiguration": object{
			"BlockPublicAcls": true, "BlockPublicPolicy": true, "IgnorePublicAcls": true, "RestrictPublicBuckets": true,
		},
		"OwnershipControls": object{"Rules": []any{object{"ObjectOwnership": "BucketOwnerEnforced"}}},
		"BucketEncryption": object{"ServerSideEncryptionConfiguration": []any{
			object{"ServerSideEncryptionByDefault": object{"SSEAlgorithm": "AES256"}},
		}},
		"LifecycleConfiguration": object{"Rules": []any{object{
			"Id": "glacier", "Status": "Enabled",
			"Transitions":                    []any{object{"StorageClass": "GLACIER_IR", "TransitionInDays": t.o.Aggregator.Archive.GlacierDays}},
			"AbortIncompleteMultipartUpload": object{"DaysAfterInitiation": 7},
		}}},
	})
	t.resources[logicalArchive] = kept(bucket)
	t.resources[logicalArchive+"Policy"] = kept(resource("AWS::S3::BucketPolicy", object{
		"Bucket": ref(logicalArchive),
		"PolicyDocument": object{"Version": "2012-10-17", "Statement": []any{object{
			"Sid": "TLS", "Effect": "Deny", "Principal": "*", "Action": "s3:*",
			"Resource":  []any{getAtt(logicalArchive, "Arn"), sub("${" + logicalArchive + ".Arn}/*")},
			"Condition": object{"Bool": object{"aws:SecureTransport": "false"}},
		}}},
	}))
	t.output(outputArchive, "Bucket of expired audit events", ref(logicalArchive))
}
