"""What is seen on a stage only: the words below the view, and the presenter's own page."""
