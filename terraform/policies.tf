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

resource "aws_iam_policy" "namespace" {
  for_each = local.of_namespaces

  name_prefix = "${var.name}-${each.value.access}-${each.value.id}-"
  policy = templatefile("${path.module}/policies/${each.value.access}-namespace.json.tftpl", {
    table     = aws_dynamodb_table.this.arn
    namespace = each.value.id
  })
  tags = var.tags
}
