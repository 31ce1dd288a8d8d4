"""Labels for videos that nobody has annotated: by frame, as BORIS files, as pictures, and as a table of the study."""
