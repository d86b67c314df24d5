"""All operations of the API: those of the specification, and those that its clients use besides."""

from tests import contract, contract_more, contract_urls

OPERATIONS = [*contract.OPERATIONS, *contract_more.OPERATIONS, *contract_urls.OPERATIONS]
