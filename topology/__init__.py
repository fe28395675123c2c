"""What a delay topology is, and how a broker is brought to it."""
