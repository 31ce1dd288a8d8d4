"""`ranks video-behavior report`: what a trained net does on animals that it has not seen, as one page."""
