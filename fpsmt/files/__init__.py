"""Files that go in and come out: arrays, reproducers."""
