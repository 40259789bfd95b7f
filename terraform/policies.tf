locals {
  accesses = toset(["take-only", "full", "read-only"])

  # A policy for each access of each namespace.
  of_namespaces = {
    for pair in setproduct(local.accesses, keys(var.namespaces)) :
    "${pair[0]}/${pair[1]}" => { access = pair[0], id = var.namespaces[pair[1]] }
  }
}

resource "aws_iam_policy" "table" {
  for_each = local.accesses

  name_prefix = "${var.name}-${each.key}-"
  policy      = templatefile("${path.module}/policies/${each.key}.json.tftpl", { table = aws_dynamodb_table.this.arn })
  tags        = var.tags
}

# Of an aggregator that runs as a process, such as in pods.
resource "aws_iam_policy" "aggregate" {
  for_each = var.aggregate == null ? {} : { this = var.aggregate }

  name_prefix = "${var.name}-aggregate-"
  policy = templatefile("${path.module}/policies/aggregate.json.tftpl", {
    table  = aws_dynamodb_table.this.arn
    stream = aws_dynamodb_table.this.stream_arn
  })
  tags = var.tags
}

resource "aws_iam_policy" "aggregate_archive" {
  for_each = try(var.aggregate.archive, null) == null ? {} : { this = trimsuffix(trimprefix(var.aggregate.archive, "s3://"), "/") }

  name_prefix = "${var.name}-aggregate-archive-"
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid      = "Archive"
      Effect   = "Allow"
      Action   = ["s3:PutObject"]
      Resource = ["arn:${split(":", aws_dynamodb_table.this.arn)[1]}:s3:::${each.value}/*"]
    }]
  })
  tags = var.tags
}

resource "aws_iam_policy" "namespace" {
  for_each = local.of_namespaces

  name_prefix = "${var.name}-${each.value.access}-${each.value.id}-"
  policy = templatefile("${path.module}/policies/${each.value.access}-namespace.json.tftpl", {
    table     = aws_dynamodb_table.this.arn
    namespace = each.value.id
  })
  tags = var.tags
}
