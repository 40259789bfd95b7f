variable "name" {
  description = "Name of the table: store.dynamodb.table."
  type        = string
  default     = "ratelimit"

  validation {
    condition     = can(regex("^[A-Za-z][A-Za-z0-9-]{2,127}$", var.name))
    error_message = "The name must be 3 to 128 letters, digits and '-', and begin with a letter."
  }
}

variable "deletion_protection" {
  description = "Have DynamoDB refuse to delete the table."
  type        = bool
  default     = true
}

variable "recovery_days" {
  description = "Days back to which the table can be restored, 1 to 35; 0 = none."
  type        = number
  default     = 0

  validation {
    condition     = var.recovery_days >= 0 && var.recovery_days <= 35 && floor(var.recovery_days) == var.recovery_days
    error_message = "The days must be a whole number from 0 to 35."
  }
}

variable "namespaces" {
  description = "Namespaces with policies of their own: name to id, as `ratelimit stack prepare` prints them."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for id in values(var.namespaces) : can(regex("^[A-Za-z0-9_-]{11}$", id))])
    error_message = "An id must be 11 letters, digits, '-' and '_'."
  }
}

variable "aggregate" {
  description = "Policies of an aggregator that runs as a process, `ratelimit aggregate`: archive is its --archive, such as s3://bucket/audit; null = none."
  type = object({
    archive = optional(string)
  })
  default = null

  validation {
    condition     = try(var.aggregate.archive, null) == null ? true : can(regex("^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9!_.'()/-]{0,200})?$", var.aggregate.archive))
    error_message = "The archive must be s3://BUCKET or s3://BUCKET/PREFIX."
  }
}

variable "tags" {
  description = "Tags of the table and of the policies."
  type        = map(string)
  default     = {}
}

variable "aggregator" {
  description = "The function that writes usage, with its code in S3: the file ratelimit_VERSION_lambda_ARCHITECTURE.zip of a release; null = none."
  type = object({
    s3_bucket         = string
    s3_key            = string
    s3_object_version = optional(string)
    architecture      = optional(string, "arm64")
    windows           = optional(list(string), ["hour", "day", "month"])
    keep              = optional(map(string), {})
    memory_mib        = optional(number, 256)
    timeout_seconds   = optional(number, 60)
    log_days          = optional(number, 30)
    archive           = optional(bool, true)
    glacier_days      = optional(number, 90)
    config            = optional(string)
  })
  default = null

  validation {
    condition     = var.aggregator == null ? true : contains(["arm64", "amd64"], var.aggregator.architecture)
    error_message = "The architecture must be arm64 or amd64."
  }

  validation {
    condition     = var.aggregator == null ? true : length(setsubtract(var.aggregator.windows, ["hour", "day", "month"])) == 0 && length(var.aggregator.windows) > 0
    error_message = "The windows must be some of hour, day and month."
  }

  validation {
    condition     = var.aggregator == null ? true : length(setsubtract(keys(var.aggregator.keep), var.aggregator.windows)) == 0
    error_message = "The keys of keep must be some of the windows."
  }

  validation {
    condition     = var.aggregator == null ? true : alltrue([for age in values(var.aggregator.keep) : can(regex("^(0|[0-9]{1,6}h)$", age)) && (age == "0" || try(tonumber(trimsuffix(age, "h")), 0) >= 24)])
    error_message = "A time of keep must be 0, for good, or 24 hours or more, such as 720h: it counts from the end of the window, and records come up to a day late."
  }

  validation {
    condition     = try(var.aggregator.config, null) == null ? true : can(regex("^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/[A-Za-z0-9._=/-]{0,511}[A-Za-z0-9._=-]$", var.aggregator.config))
    error_message = "The config must be an object of S3, such as s3://bucket/ratelimit.yaml, of letters, digits and . _ = / -."
  }
}
