"""video-behavior: names what an animal does in each frame of a video."""
