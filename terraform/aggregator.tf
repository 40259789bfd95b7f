# The function that reads the table's stream, as the stack of CloudFormation has it.

locals {
  aggregators = var.aggregator == null ? {} : { this = var.aggregator }
  configured  = { for key, options in local.aggregators : key => options if options.config != null }
  archives    = { for key, options in local.aggregators : key => options if options.archive }

  # Made from the program's definition. The first is of buckets, the second of audit events that expire.
  stream_filters = jsondecode(file("${path.module}/stream-filters.json"))
}

resource "aws_cloudwatch_log_group" "aggregator" {
  for_each = local.aggregators

  name              = "/aws/lambda/${var.name}-aggregator"
  retention_in_days = each.value.log_days
  tags              = var.tags
}

resource "aws_sqs_queue" "dead_letters" {
  for_each = local.aggregators

  name_prefix                = "${substr(var.name, 0, 40)}-aggregator-"
  message_retention_seconds  = 1209600
  sqs_managed_sse_enabled    = true
  visibility_timeout_seconds = 6 * each.value.timeout_seconds
  tags                       = var.tags
}

resource "aws_iam_role" "aggregator" {
  for_each = local.aggregators

  name_prefix = "${substr(var.name, 0, 26)}-aggregator-"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "lambda.amazonaws.com" }
    }]
  })
  tags = var.tags
}

resource "aws_iam_role_policy" "aggregator" {
  for_each = local.aggregators

  role = aws_iam_role.aggregator[each.key].id
  policy = templatefile("${path.module}/policies/aggregator.json.tftpl", {
    table  = aws_dynamodb_table.this.arn
    stream = aws_dynamodb_table.this.stream_arn
    log    = "${aws_cloudwatch_log_group.aggregator[each.key].arn}:*"
    queue  = aws_sqs_queue.dead_letters[each.key].arn
  })
}

# The function's configuration, whose budgets it watches.
resource "aws_iam_role_policy" "aggregator_config" {
  for_each = local.configured

  role = aws_iam_role.aggregator[each.key].id
  policy = templatefile("${path.module}/policies/aggregator-config.json.tftpl", {
    table  = aws_dynamodb_table.this.arn
    object = "arn:${split(":", aws_dynamodb_table.this.arn)[1]}:s3:::${trimprefix(each.value.config, "s3://")}"
  })
}

resource "aws_lambda_function" "aggregator" {
  for_each = local.aggregators

  function_name     = "${substr(var.name, 0, 53)}-aggregator"
  description       = "Reads the stream of table ${var.name}"
  runtime           = "provided.al2023"
  handler           = "bootstrap"
  architectures     = [each.value.architecture == "amd64" ? "x86_64" : each.value.architecture]
  s3_bucket         = each.value.s3_bucket
  s3_key            = each.value.s3_key
  s3_object_version = each.value.s3_object_version
  role              = aws_iam_role.aggregator[each.key].arn
  memory_size       = each.value.memory_mib
  timeout           = each.value.timeout_seconds
  tags              = var.tags

  environment {
    variables = merge(
      {
        RATELIMIT_TABLE   = aws_dynamodb_table.this.name
        RATELIMIT_WINDOWS = join(",", each.value.windows)
      },
      length(each.value.keep) > 0 ? { RATELIMIT_KEEP = join(",", [for window, age in each.value.keep : "${window}=${age}"]) } : {},
      each.value.archive ? { RATELIMIT_ARCHIVE = "s3://${aws_s3_bucket.archive[each.key].bucket}/audit" } : {},
      each.value.config != null ? { RATELIMIT_CONFIG = each.value.config } : {},
    )
  }

  logging_config {
    log_format = "Text"
    log_group  = aws_cloudwatch_log_group.aggregator[each.key].name
  }

  depends_on = [aws_iam_role_policy.aggregator, aws_iam_role_policy.aggregator_config]
}

resource "aws_lambda_event_source_mapping" "aggregator" {
  for_each = local.aggregators

  event_source_arn                   = aws_dynamodb_table.this.stream_arn
  function_name                      = aws_lambda_function.aggregator[each.key].arn
  starting_position                  = "TRIM_HORIZON"
  batch_size                         = 1000
  maximum_batching_window_in_seconds = 5
  maximum_retry_attempts             = -1
  maximum_record_age_in_seconds      = 79200
  tumbling_window_in_seconds         = 900
  bisect_batch_on_function_error     = true
  function_response_types            = ["ReportBatchItemFailures"]

  destination_config {
    on_failure {
      destination_arn = aws_sqs_queue.dead_letters[each.key].arn
    }
  }

  filter_criteria {
    dynamic "filter" {
      for_each = each.value.archive ? local.stream_filters : slice(local.stream_filters, 0, 1)

      content {
        pattern = filter.value
      }
    }
  }
}
