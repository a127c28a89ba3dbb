"""The describer: drawn scenes of shapes and colours, put into words by a small GIT."""
