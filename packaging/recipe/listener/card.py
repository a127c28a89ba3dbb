"""What the listener's README says of its data, its recipe and its limits."""

DATA = (
    "A grammar wrote the sentences (`packaging/recipe/listener`, `data/commands.json`): numbers from zero to 999,999, "
    "digits, times of day, sums, and commands such as *turn on the kitchen light* or *play the second song*: 229 words "
    "in all, written as words in lower case without marks. espeak-ng said them with five English accents, 41 voices, "
    "130 to 215 words a minute and many pitches; what it says is not under its licence, the GPL. Then silence around "
    "the sentence, another loudness, and in three of four noise or hum, 6 to 40 dB below the voice. Nothing was "
    "downloaded."
)
HELD_OUT = (
    "One sentence in twenty is held out by its checksum, and eight more voices; the figures below come from those "
    "sentences said by those voices."
)
RECIPE = (
    "While it trains, a second head on its ears names the phone and the word at each moment, from espeak-ng "
    "(weight 0.5); it is not shipped. {utterances:,} sentences are spoken, then heard again elsewhere and in other "
    "noise."
)
LIMITS = (
    "Hears one short sentence, up to four seconds; of longer sounds the first four. Knows the words of its grammar and "
    "the way espeak-ng speaks; people, other synthesizers and other words come out as something from its own world. "
    "Silence and music too. It gives no times."
)
