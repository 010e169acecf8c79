"""Where the time goes: step meters, the throughput model and the verdict."""
