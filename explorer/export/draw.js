// Draws the page's figures from the JSON beside it, in the colours of the reader's theme.
(() => {
  "use strict";
  const {figures, palette} = JSON.parse(document.getElementById("drawings").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");

  const coloured = (trace, colours) => {
    const copy = structuredClone(trace);
    for (const [path, name] of Object.entries(trace.meta?.paint ?? {})) {
      const parts = path.split("."), last = parts.pop();
      let place = copy;
      for (const part of parts) place = place[part] ??= {};
      place[last] = colours[name];
    }
    return copy;
  };

  const draw = () => {
    const colours = palette[dark.matches ? "dark" : "light"];
    for (const place of document.querySelectorAll("[data-figure]")) {
      const {data, layout} = figures[Number(place.dataset.figure)];
      const ink = getComputedStyle(document.body);
      const shape = {...layout, template: "none", font: {...layout.font, color: ink.color, family: ink.fontFamily}};
      Plotly.react(place, data.map(trace => coloured(trace, colours)), shape, {displayModeBar: false, responsive: true});
    }
    document.documentElement.dataset.drawn = "true";
  };

  dark.addEventListener("change", draw);
  draw();
})();
