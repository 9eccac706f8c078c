"use strict";
// What is found are the titles of the map's points. Everything is set as text, never as HTML.
const box = document.getElementById("query"), list = document.getElementById("found");
const maps = [...document.querySelectorAll("svg.map")].map((m) => [...m.querySelectorAll("circle")]);
const titles = maps[0].map((c) => c.querySelector("title").textContent);
document.getElementById("search").hidden = false;
box.addEventListener("input", () => {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  titles.forEach((t, i) => {
    const hit = words.length > 0 && words.every((w) => t.toLowerCase().includes(w));
    for (const m of maps) m[i].classList.toggle("hit", hit);
    if (hit) found.push(t);
  });
  list.replaceChildren(...found.slice(0, 50).map((t) => {
    const item = document.createElement("li"), small = document.createElement("small");
    const [head, ...rest] = t.split("\n");
    small.textContent = rest.join(" ");
    item.append(head, document.createElement("br"), small);
    return item;
  }));
  document.getElementById("found-words").textContent =
    words.length ? found.length + (found.length === 1 ? " node" : " nodes") + " of the sample" + (found.length > 50 ? ", the first 50:" : "") : "";
});
