"""Statements, one module for each paper or topic.  Short, no tactics: read these if you trust nothing else."""
