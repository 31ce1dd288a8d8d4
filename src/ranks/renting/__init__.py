"""Files that take a run to machines which others own: checked requests, and a writer for each way to start them."""
