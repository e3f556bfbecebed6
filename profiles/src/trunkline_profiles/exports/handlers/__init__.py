"""The work of an export: reading the document, setting its pages, and measuring them."""
