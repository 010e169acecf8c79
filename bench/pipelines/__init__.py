"""Input pipelines side by side: the reference's, the usual hand-tuned one, ours, and other libraries'."""
