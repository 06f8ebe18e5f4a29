"""What people look at: trees, tables, outcomes, progress."""
