"""Texts on which tokenizers are compared: what this program reads, what a file that it writes is read as, and what
llama.cpp reads (tests).
"""

from __future__ import annotations

CODE = (
    "def fibonacci(n):\n    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)\n",
    "x = [1,2,3];\r\n\tif(!a){b+=0x1F;}\r\n", "for (int i = 0; i < 10; ++i) { sum += a[i]; }",
    "SELECT * FROM t WHERE id=42;", "#include <stdio.h>\n\nint main(void)\n{\n\treturn 0;\n}\n",
    "camelCase snake_case kebab-case SCREAMING_CASE PascalCase", "HTTPServer fooBar XMLHttpRequest iPhone15Pro",
    "https://a.b/c_d?e=f&g#h", "user@example.com, C:\\path\\file.txt", "a && b || c ?? d ?: e => f -> g",
    "{\"key\": [null, true, 1.5e-10]}", "<div class=\"x\">&nbsp;</div>", "$100.50+3=7^2|~`", "a/b//c\n/\n//\r\n",
    "```python\nprint('hi')\n```", "// comment\n/* block */", "\\n \\t \\\\ \\u00e9", "regex: ^[a-z]+$ \\d{2,}",
    "@decorator\nasync def f(*args, **kwargs) -> None: ...", "let s = `template ${x}`;",
    "0b1010 0o17 0xFF 1_000_000", "!@#$%^&*()_+-=[]{}|;':\",./<>?", "~~~ ~x~ a~b", "a  =  b;   c", "!function(){}",
    "--flag=value -x", "a.b.c.d", "i++ --j", "x<y>z", "#!/bin/sh\nset -e\n", "\"\"\"doc\"\"\"",
)  # fmt: skip
NUMBERS = (
    "0", "12", "123", "1234", "12345", "123456", "1234567", "1234567890123456789012345678901234567890",
    "3.14159 2.71828", "1,000,000.00", "a1b22c333d4444e55555", "٣٤٥ १२३ ௧௨௩ ½ ¾ ² ³", "ⅣⅫ ①②③ ㊿",
    "2024-11-28T08:34:39Z", "v1.2.3-rc4", "1st 2nd 3rd", "1000000 3.14159", "x  12 y 3456  z", "007 0.5 .5 5.",
    "+1 (555) 123-4567", "12é 34日 56_7 89a", "１２３４５", "1 2 3 4 5 6 7 8 9", "100%", "²³¹⁴", "৪৫৬৭", "1e10 1E-5",
    "ab12 34", "\t123\n4567",
)  # fmt: skip
ENGLISH = (
    "Hello world", "Hello, world!", "hello", " Hello", "Hello ", "don't we'll I'm THEY'RE HE'S you'd've",
    "'sentence' \"q\" 's 'S 'T", "It's John's. 'Tis 'twas rock 'n' roll", "a,b...c!?\n\n\n",
    "The quick brown fox jumps over the lazy dog.", "To be, or not to be: that is the question.",
    "WORDS IN CAPITALS and Words In Title Case", "e.g. i.e. etc. U.S.A.",
    "(parentheses) [brackets] {braces} <angles>", "“Curly” ‘quotes’ — dash – en…", "he said:\"yes\"",
    "wait...what?!", "one;two:three", "A", "a", "I", ".", "!", "?", "'", "''", "'s", "' s", "x's y't z'LL", "l'été",
    "can’t won’t", "Mr. Smith went to Washington D.C. on Jan. 1st.", "word\n", "\nword", "semi-detached co-op",
    "a'b'c", "ab'CD'ef", "it'S IT's",
)  # fmt: skip
EUROPEAN = (
    "Zoë’s café naïve", "éa e\u0301te\u0301", "Łódź żółć ćma", "Straße GROẞ ß", "Ὀδυσσεύς ἄνδρα μοι",
    "Привет, Мир! ЁЖ", "Україна ї є ґ", "Türkçe İstanbul ıI iİ", "ÀÉÎÕÜ àéîõü", "ǅungla ǆ Ǆ ʻOkina",
    "Ĳssel œuvre Ærø", "ﬁ ﬂ ﬀ ligatures", "Ａｂｃ ｆｕｌｌｗｉｄｔｈ", "fooBAR ÉCOLEécole ΑΒΓαβγ АБВабв", "ÀbC dÉf",
    "Հայերեն", "ქართული ᲥᲐᲠᲗᲣᲚᲘ", "𝐁𝐨𝐥𝐝 𝒮𝒸𝓇𝒾𝓅𝓉", "L'État c'est moi l’homme", "¿Qué? ¡No!", "«guillemets»", "ᏣᎳᎩ ꭰꭱ",
    "µ Ω Å ℃ ℉ №", "ªº ⁿ", "Ⴀ ⴀ", "ⱯꞋꞌ", "𞤀𞤣𞤤", "\u212a\u2126\u212b",
)  # fmt: skip
ASIAN = (
    "你好，世界", "你好，世界 🙂", "今天天气很好。我们去公园吧！", "日本語カナ ひらがな ﾊﾝｶｸ",
    "東京タワーは333mです。", "안녕하세요 세계", "ㄱㄴㄷ ㅏㅑㅓ 한글", "ㄅㄆㄇ", "《书名》、“引号”；：—…",
    "中文English混合123文字", "𠀀𠀁 㐀㐁 豈更", "繁體中文與簡體", "〇〡〢 々〆ヶ", "！？。，、", "ｱｲｳ｡｢｣",
    "ภาษาไทยไม่เว้นวรรค", "ພາສາລາວ", "ភាសាខ្មែរ", "မြန်မာဘာသာ", "བོད་སྐད་", "ᠮᠣᠩᠭᠣᠯ", "Tiếng Việt có dấu",
    "中\n文\n\n字", "漢字kanji漢字", "\u4e00\u3000\u4e8c", "，a。b", "你 好 吗", "꧁꧂ ꩠ ꦗꦮ", "\uf900\u2f00 ⺀",
    "アー、イー。", "한국어,텍스트!", "数字１２３と123",
)  # fmt: skip
INDIC_AND_ARABIC = (
    "हिन्दी भाषा", "नमस्ते दुनिया।", "বাংলা ভাষা", "தமிழ் மொழி", "తెలుగు", "ಕನ್ನಡ", "മലയാളം", "ਪੰਜਾਬੀ", "ગુજરાતી",
    "සිංහල", "مرحبا بالعالم", "السَّلَامُ عَلَيْكُمْ", "فارسی می‌خواهم", "اردو زبان۔", "שלום עולם", "שָׁלוֹם",
    "ܣܘܪܝܝܐ", "አማርኛ፡ሰላም", "क्‍ष क्‌ष", "१२३४५ रुपये", "؟ ، ؛", "لا إله", "ﷺ ﷲ", "Latin العربية mixed हिन्दी",
)  # fmt: skip
EMOJI = (
    "🙂", "👩\u200d👩\u200d👧", "🇩🇪🇫🇷", "❤️ ☺︎", "👍🏽👍", "a🙂b", "🙂🙂🙂🙂", "☃ ★ ✓ ♥ ♪", "→ ← ⇒ ∀x∈ℝ: x² ≥ 0",
    "½ × ¾ ÷ 2 ≠ 3", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "¥ € £ ₹ ₿", "°C ‰ ‱ § ¶ †", "▁▂▃ ░▒▓ ┌─┐", "⠓⠑⠇⠇⠕", "♔ ♕ 🂡", "𝄞 music", "© ® ™",
)  # fmt: skip
WHITE_SPACE = (
    "", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\r\n\r\n", "\t", "\t\t", " \n", "\n ", " \n \n x",
    "  two  spaces\n\n\ttab", "one   \n  two \n", "end ", "end  ", "a\n\n\nb", "a \n \n b", "\ta\t\tb",
    "\u00a0nb\u200bz", "a\u2003b\u2009c", "\u3000\u3000全角", "a\u2028b\u2029c", "x\u0085y\u000by\u000cz",
    " leading and trailing ", "        eight", "a        b", " " * 17 + "x", " " * 64, "\n" * 12 + "x", "x\n" * 6,
    "a\r\rb\rc", "tab\tspace \t mix", "\u200b\u200c\u200d", "\ufeffbom", "\u00ad soft", "word\u00a0 word",
    "  \u00a0 x", " .", "  .", " ?x", "\n.", "\t.\n", " \u0301",
)  # fmt: skip
ODD = (
    "\x00", "a\x00b", "\x01\x02\x7f", "\x1b[31mred\x1b[0m", "\ufffd", "a\ufffdb", "\ue000\uf8ff", "\U000e0001",
    "\U0010ffff", "\u0301", "a\u0301\u0302\u0303", "Z\u0351\u036b\u0343a\u0334l\u0321g\u0316o", "\u0378\u0530",
    "\u20dd a\u20dd", "a" * 300, "ab" * 200, "1" * 200, "!" * 200, "=" * 80, "-" * 79 + "\n", "é" * 100, "日" * 100,
    "🙂" * 50, " a" * 100, "Aa" * 100, "AAAA" * 30, "a b" * 60, "the " * 60, "\n\n \n" * 20,
    "lorem ipsum dolor sit amet, " * 12, "IMGIMGABCZ <sentinel:12> IMGIMGZ", "((((a))))", "....", "...x", "a....b",
    "!!!\n\n!!!", "?\n?", "&amp;&#39;", "\\", "|", "||| (|)", "<0x0A> <0xFF>", "▁▁ ▁word", "Ġ Ċ ĉ", "##piece ##",
    "<pad>x", "[MASK] [CLS]", "a\u0300\u0316b \u0915\u093c", "\u1100\u1161\u11a8 각", "\u0958 \u09dc \u0344",
)  # fmt: skip
SPECIAL = (
    "<s>", "</s>", "<unk>", "<s>Hello</s>", "Hello </s> world", "<|im_start|>user\nhi<|im_end|>\n",
    "<|im_start|>system\nYou are helpful.<|im_end|>\n<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n",
    "<|im_end|><|im_end|>", "a<|im_end|>b", " <|im_end|> ", "  <|im_end|>\n\n x", "<|im_end|", "|im_end|>",
    "<<|im_end|>>", "<tool>call</tool>", "x<tool>", "<tool><tool>  <tool>", "<tool>\n</s>\t<tool>", "<too",
    "<|im_start|>\u00a0a", "<|im_start|>日本語<|im_end|>नमस्ते",
)  # fmt: skip
TEXTS: tuple[str, ...] = tuple(
    dict.fromkeys((
        *CODE, *NUMBERS, *ENGLISH, *EUROPEAN, *ASIAN, *INDIC_AND_ARABIC, *EMOJI, *WHITE_SPACE, *ODD, *SPECIAL,
    ))
)  # fmt: skip
"""All of them, each once; control tokens are <s>, </s>, <|im_start|> and <|im_end|>, user-defined ones <tool>."""
