"""Starting ranks as processes on this machine: placement on devices, start, supervision, restart. Imports no torch."""
