"""Writes a small made-up shop: items with a price, a stock and a brand, and orders that say what goes together.

    python3 catalog.py FOLDER
"""

import json
import pathlib
import random
import sys

KINDS = {
    "tent": ("camping", "two person tent with a rain fly and aluminium poles", 180),
    "sleeping bag": ("camping", "warm sleeping bag with a down filling", 120),
    "camping stove": ("camping", "light gas stove to cook outdoors", 45),
    "hiking boot": ("hiking", "waterproof leather boot for rough trails", 140),
    "trekking pole": ("hiking", "light adjustable pole for steep trails", 40),
    "rain jacket": ("hiking", "waterproof jacket with a hood for wet days", 95),
    "road bike": ("cycling", "fast bike with a carbon fork and drop bars", 1200),
    "bike helmet": ("cycling", "ventilated helmet for the road", 60),
    "bike pump": ("cycling", "small hand pump for tyres, with a gauge", 25),
    "espresso maker": ("kitchen", "steel pot to make espresso on the stove", 30),
    "coffee grinder": ("kitchen", "hand grinder with ceramic burrs for beans", 35),
    "coffee beans": ("kitchen", "dark roasted beans with a taste of chocolate", 12),
}
BRANDS = ["Alder", "Birch", "Cedar", "Dogwood"]
WORDS = ["red", "blue", "green", "large", "small", "classic", "new", "travel"]


def main():
    folder, r = pathlib.Path(sys.argv[1]), random.Random(7)
    folder.mkdir(parents=True, exist_ok=True)
    items, subjects = [], {}
    for kind, (subject, text, price) in KINDS.items():
        for brand in BRANDS:
            for word in r.sample(WORDS, 5):
                sku = f"{kind}-{brand}-{word}".replace(" ", "-").lower()
                items.append({"id": sku, "text": f"{brand} {word} {kind}: {text}", "label": subject,
                              "price": round(price * r.uniform(0.7, 1.4), 2), "stock": r.choice([0, 1, 3, 10, 40]),
                              "brand": brand})
                subjects.setdefault(subject, {}).setdefault(kind, []).append(sku)
    (folder / "nodes.jsonl").write_text("".join(json.dumps(i) + "\n" for i in items))
    with open(folder / "orders.jsonl", "w") as orders:
        for n in range(4000):  # of two or three kinds of one subject
            kinds = subjects[r.choice(list(subjects))]
            lines = [{"id": r.choice(kinds[kind])} for kind in r.sample(list(kinds), r.choice([2, 2, 3]))]
            orders.write(json.dumps({"id": f"order-{n}", "items": lines}) + "\n")


main()
