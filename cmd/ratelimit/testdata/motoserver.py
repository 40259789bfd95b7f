"""moto's server, with two things that CloudFormation does and moto does not.

An update can change the deletion protection of a table, and RetainExceptOnCreate keeps a resource when its stack is
deleted.
"""

import sys

from moto.cloudformation.parsing import ResourceMap
from moto.dynamodb.models.table import Table
from moto.server import main


def update_table(cls, original_resource, new_resource_name, cloudformation_json, account_id, region_name):
    protected = cloudformation_json["Properties"].get("DeletionProtectionEnabled", False)
    original_resource.deletion_protection_enabled = protected
    return original_resource


def delete_what_is_not_kept(self, delete=ResourceMap.delete):
    for resource in self._resource_json_map.values():
        if resource.get("DeletionPolicy") == "RetainExceptOnCreate":
            resource["DeletionPolicy"] = "Retain"
    delete(self)


Table.update_from_cloudformation_json = classmethod(update_table)
ResourceMap.delete = delete_what_is_not_kept
sys.exit(main())
