"""PostgreSQL: the embedded server, engines, schema, partitions, and rows in bulk (`copy`, with `clean`)."""
