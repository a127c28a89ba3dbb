"""A run as one HTML file that any browser opens, with nothing fetched from anywhere."""
