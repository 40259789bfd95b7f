output "table_name" {
  description = "Name of the table: store.dynamodb.table."
  value       = aws_dynamodb_table.this.name
}

output "table_arn" {
  description = "ARN of the table."
  value       = aws_dynamodb_table.this.arn
}

output "stream_arn" {
  description = "ARN of the table's stream."
  value       = aws_dynamodb_table.this.stream_arn
}

output "policy_arns" {
  description = "ARNs of the policies of the table: take-only, full, read-only."
  value       = { for access, policy in aws_iam_policy.table : access => policy.arn }
}

output "aggregate_policy_arns" {
  description = "ARNs of the policies of an aggregator that runs as a process; none without `aggregate`."
  value       = concat([for policy in aws_iam_policy.aggregate : policy.arn], [for policy in aws_iam_policy.aggregate_archive : policy.arn])
}

output "namespace_policy_arns" {
  description = "ARNs of the policies of namespaces, by access/name."
  value       = { for name, policy in aws_iam_policy.namespace : name => policy.arn }
}

output "aggregator_arn" {
  description = "ARN of the aggregator; null without one."
  value       = one([for function in aws_lambda_function.aggregator : function.arn])
}

output "archive_bucket" {
  description = "Bucket of audit events that have expired; null without one."
  value       = one([for bucket in aws_s3_bucket.archive : bucket.bucket])
}
