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

variable "tags" {
  description = "Tags of the table and of the policies."
  type        = map(string)
  default     = {}
}
