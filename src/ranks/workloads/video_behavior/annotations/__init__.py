"""Events of a video: every file format, read and written, and the labels of frames."""
