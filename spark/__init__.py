"""For data engineers: delayed messages from DataFrames, backfills and their audit."""
