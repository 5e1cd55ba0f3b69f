"""Arrays in, arrays out: distances, basis matrices, responsibilities, linear algebra."""
