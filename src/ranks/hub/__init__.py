"""Models to and from the Hugging Face Hub, through huggingface_hub, which is imported inside functions only."""
