"""Stand-in for a folder that tinygrad 0.12.0's source distribution leaves out."""
