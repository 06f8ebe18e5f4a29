"""The commands, one file each: they read arguments, ask the library, print, save, and return an exit code."""
