"""Data that a run prepares once and keeps: locks between processes that want the same, and what they say."""
