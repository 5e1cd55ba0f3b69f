"""Uses of a fitted map: landscapes, monitoring, classification by the nearest surface."""
