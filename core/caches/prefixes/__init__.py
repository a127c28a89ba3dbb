"""What earlier runs have read: kept, saved, loaded."""
