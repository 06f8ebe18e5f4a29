"""Every example in README.md and docs/ is run, and its output compared."""
