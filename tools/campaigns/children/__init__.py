"""Programs that the crash campaigns start, watch and kill. Each says what it did in JSON lines."""
