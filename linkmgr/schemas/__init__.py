"""The words of the API: one module each, with every member declared once, and what a create and an
update do."""
