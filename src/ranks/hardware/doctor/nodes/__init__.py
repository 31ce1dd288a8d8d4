"""Several machines: they meet as the ranks of a run do, say what they have, and measure their links."""
