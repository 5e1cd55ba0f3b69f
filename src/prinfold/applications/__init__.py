"""What one does with a map: landscapes, monitoring, classification by the nearest surface."""
