"""`ranks watch RUN --serve`: a read-only page about one run, for a browser on this machine."""
