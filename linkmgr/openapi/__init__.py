"""The OpenAPI document: the route table, the marshmallow schemas of bodies, and what operations.py adds to them.

Nothing here is loaded before the document is first asked for.
"""
