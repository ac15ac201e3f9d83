"""Assessment: transcribe, judge, evaluate, compare."""
