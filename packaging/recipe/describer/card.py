"""What the describer's README says of its data, its recipe and its limits."""

DATA = (
    "A grammar wrote the scenes (`packaging/recipe/describer`) and Pillow drew them, 96 × 96 pixels: one, two or three "
    "of seven shapes, small or large, in eight colours, on five grounds; shades, tilts, sizes and places differ a "
    "little each time. Each has one right caption: where a single shape is, what is to the left of or above what, and "
    "the ground. Nothing was downloaded, and no drawing was shown twice."
)
HELD_OUT = (
    "One caption in twenty is held out by its checksum: no drawing of such a scene was in training, and the figures "
    "below come from those. Besides, four pairs of shape and colour (purple star, green ring, orange cross, white "
    "triangle) were never drawn at all in training: the last figure is of scenes with one of them."
)
RECIPE = (
    "While it trains, a second head on its eyes names shape, colour and size of what each patch of 12 × 12 pixels "
    "shows (weight 0.5), and the patch's row and column (a fifth of that), without which 900 steps did not teach "
    "it left from right; it is not shipped."
)
LIMITS = (
    "Sees such drawings and nothing else: a photograph becomes shapes on a ground. Four shapes or more, shapes that "
    "touch, other colours and other sizes are put into the words it has."
)
