# The bucket for audit events that have expired.

resource "aws_s3_bucket" "archive" {
  for_each = local.archives

  bucket_prefix = "${lower(substr(var.name, 0, 30))}-audit-"
  tags          = var.tags
}

resource "aws_s3_bucket_public_access_block" "archive" {
  for_each = local.archives

  bucket                  = aws_s3_bucket.archive[each.key].id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "archive" {
  for_each = local.archives

  bucket = aws_s3_bucket.archive[each.key].id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "archive" {
  for_each = local.archives

  bucket = aws_s3_bucket.archive[each.key].id

  rule {
    apply_server_side_encryption_by_default {
      sse_algorithm = "AES256"
    }
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "archive" {
  for_each = local.archives

  bucket = aws_s3_bucket.archive[each.key].id

  rule {
    id     = "glacier"
    status = "Enabled"

    filter {}

    transition {
      days          = each.value.glacier_days
      storage_class = "GLACIER_IR"
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 7
    }
  }
}

resource "aws_s3_bucket_policy" "archive" {
  for_each = local.archives

  bucket = aws_s3_bucket.archive[each.key].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "TLS"
      Effect    = "Deny"
      Principal = "*"
      Action    = "s3:*"
      Resource  = [aws_s3_bucket.archive[each.key].arn, "${aws_s3_bucket.archive[each.key].arn}/*"]
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })
}

resource "aws_iam_role_policy" "archive" {
  for_each = local.archives

  role = aws_iam_role.aggregator[each.key].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid      = "Archive"
      Effect   = "Allow"
      Action   = ["s3:PutObject"]
      Resource = ["${aws_s3_bucket.archive[each.key].arn}/audit/*"]
    }]
  })
}
