"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (name, props = {}, ...children) => {
    const element = Object.assign(document.createElement(name), props);
    element.append(...children);
    return element;
  };

  // The tooltip: first line bold, then "name: value" lines as a list.
  const tip = document.getElementById("tip");
  const hide = () => { tip.hidden = true; };
  const tell = (said, box) => {
    const [label, ...lines] = said.split("\n");
    tip.replaceChildren(make("b", { textContent: label }));
    if (lines.length) {
      const list = make("dl");
      for (const line of lines) {
        const at = line.indexOf(": ");
        list.append(make("dt", { textContent: line.slice(0, at) }), make("dd", { textContent: line.slice(at + 2) }));
      }
      tip.append(list);
    }
    tip.hidden = false;
    const own = tip.getBoundingClientRect(), gap = 14;
    let left = box.right + gap, top = box.top + box.height / 2 - own.height / 2;
    if (left + own.width > innerWidth - 8) left = box.left - gap - own.width;
    if (left < 8) {
      left = Math.max(8, Math.min(innerWidth - own.width - 8, box.left + box.width / 2 - own.width / 2));
      top = box.top - gap - own.height;
      if (top < 8) top = box.bottom + gap;
    }
    tip.style.left = `${left}px`;
    tip.style.top = `${Math.max(8, Math.min(innerHeight - own.height - 8, top))}px`;
  };
  addEventListener("scroll", hide, { passive: true, capture: true });
  addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });

  // Charts: what is nearest to the pointer speaks; with the keyboard, arrows walk along the marks.
  for (const plot of all("svg.plot")) {
    const name = plot.querySelector(":scope > title");
    if (name) { plot.setAttribute("aria-label", name.textContent); plot.removeAttribute("aria-labelledby"); name.remove(); }
    const marks = all("[data-series]", plot).filter((m) => m.querySelector("title")).map((element) => {
      const title = element.querySelector("title"), said = title.textContent;
      title.remove();
      element.setAttribute("aria-label", said.replaceAll("\n", ", "));
      return { element, said, series: Number(element.dataset.series) };
    });
    if (!marks.length) continue;
    plot.setAttribute("role", "group");
    plot.setAttribute("aria-roledescription", "chart; arrow keys move between points");
    plot.tabIndex = 0;
    let now = null;
    const wide = marks.some((m) => m.element.matches(".bar,.bubble"));
    const place = (m) => {
      if (!m.box) { m.box = m.element.getBBox(); m.x = m.box.x + m.box.width / 2; m.y = m.box.y + m.box.height / 2; }
      return m;
    };
    const seen = () => marks.filter((m) => !m.element.classList.contains("off")).map(place);
    const point = (m) => {
      if (now) now.element.classList.remove("on");
      now = m;
      if (!m) { hide(); return; }
      m.element.classList.add("on");
      tell(m.said, m.element.getBoundingClientRect());
    };
    plot.addEventListener("pointermove", (event) => {
      if (wide) { point(marks.find((m) => m.element === event.target) || null); return; }
      const matrix = plot.getScreenCTM();
      if (!matrix) return;
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
      let best = null, near = (26 / matrix.a) ** 2;
      for (const m of seen()) {
        const far = (m.x - at.x) ** 2 + (m.y - at.y) ** 2;
        if (far <= near) { near = far; best = m; }
      }
      if (best !== now) point(best);
    });
    plot.addEventListener("pointerleave", () => point(null));
    plot.addEventListener("blur", () => point(null));
    plot.addEventListener("keydown", (event) => {
      const shown = seen();
      if (!shown.length) return;
      const key = event.key;
      const start = shown.find((m) => m.element.classList.contains("chosen")) || shown[0];
      const row = (s) => shown.filter((m) => m.series === s).sort((a, b) => wide ? a.y - b.y : a.x - b.x);
      const rows = [...new Set(shown.map((m) => m.series))].sort((a, b) => a - b);
      let next = null;
      if (key === "Home" || key === "End") {
        const own = row((now || start).series);
        next = key === "Home" ? own[0] : own[own.length - 1];
      } else if (key === "ArrowRight" || key === "ArrowLeft") {
        const own = row((now || start).series);
        next = now ? own[Math.max(0, Math.min(own.length - 1, own.indexOf(now) + (key === "ArrowRight" ? 1 : -1)))] : start;
      } else if (key === "ArrowUp" || key === "ArrowDown") {
        const at = rows.indexOf((now || start).series) + (key === "ArrowDown" ? 1 : -1);
        const own = row(rows[(at + rows.length) % rows.length]);
        next = now ? own.reduce((a, b) => Math.abs(b.x - now.x) < Math.abs(a.x - now.x) ? b : a) : start;
      }
      if (next) { event.preventDefault(); point(next); }
    });
  }

  // Legends: pointing lights a series up, pressing hides it, in every picture of the figure.
  for (const button of all(".legend button")) {
    const plots = all("svg.plot", button.closest("figure"));
    const parts = () => plots.flatMap((plot) => all(`[data-series="${button.dataset.slot}"]`, plot));
    const light = (on) => {
      for (const plot of plots) plot.classList.toggle("focus", on && button.getAttribute("aria-pressed") === "true");
      for (const part of parts()) part.classList.toggle("lit", on);
    };
    button.addEventListener("pointerenter", () => light(true));
    button.addEventListener("pointerleave", () => light(false));
    button.addEventListener("focus", () => light(true));
    button.addEventListener("blur", () => light(false));
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(shown));
      for (const part of parts()) part.classList.toggle("off", !shown);
      light(shown);
    });
  }

  // Tabs. Those of one title, e.g. of the population size, change together.
  const groups = [];
  for (const tabs of all(".tabs")) {
    const panels = all(":scope > .panel", tabs);
    const list = make("div", { className: "tablist" });
    list.setAttribute("role", "tablist");
    list.setAttribute("aria-label", tabs.dataset.title || "Choice");
    const choose = (i, focus) => panels.forEach((panel, j) => {
      panel.hidden = i !== j;
      const button = list.children[j];
      button.setAttribute("aria-selected", String(i === j));
      button.tabIndex = i === j ? 0 : -1;
      if (i === j && focus) button.focus();
    });
    const turn = (i, focus) => {
      choose(i, focus);
      for (const other of groups) {
        const same = other.title === tabs.dataset.title && other.labels.indexOf(panels[i].dataset.label);
        if (other.tabs !== tabs && Number.isInteger(same) && same >= 0) other.choose(same);
      }
    };
    groups.push({ tabs, choose, title: tabs.dataset.title, labels: panels.map((p) => p.dataset.label) });
    panels.forEach((panel, i) => {
      const button = make("button", { type: "button", textContent: panel.dataset.label });
      button.setAttribute("role", "tab");
      button.setAttribute("aria-controls", panel.id);
      button.addEventListener("click", () => turn(i));
      button.addEventListener("keydown", (event) => {
        const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (by) { event.preventDefault(); turn((i + by + panels.length) % panels.length, true); }
      });
      panel.setAttribute("role", "tabpanel");
      panel.querySelector(".panel-name").hidden = true;
      list.append(button);
    });
    if (tabs.dataset.title) tabs.prepend(make("span", { className: "tabs-name", textContent: tabs.dataset.title }), list);
    else tabs.prepend(list);
    choose(Number(tabs.dataset.chosen) || 0);
  }

  // Tables: sorting by any column, a filter and a first stretch for long ones.
  for (const table of all("table.data")) {
    const body = table.tBodies[0], rows = [...body.rows], first = Number(table.dataset.shown) || 0;
    const tools = table.closest("figure").querySelector(".tools");
    let whole = !first || rows.length <= first, wanted = "";
    const more = make("button", { type: "button" });
    const draw = () => {
      let shown = 0, fitting = 0;
      for (const row of body.rows) {
        const fits = !wanted || row.textContent.toLowerCase().includes(wanted);
        fitting += fits;
        row.hidden = !fits || (!whole && shown >= first && !row.classList.contains("chosen"));
        shown += !row.hidden;
      }
      more.hidden = !first || fitting <= first;
      more.textContent = whole ? `Show the first ${first}` : `Show all ${fitting}`;
    };
    if (rows.length > 12) {
      const field = make("input", { type: "search" });
      field.addEventListener("input", () => { wanted = field.value.trim().toLowerCase(); draw(); });
      const count = make("span", { textContent: `${rows.length} rows` });
      tools.append(count, more, make("label", { className: "find" }, "Filter ", field));
      tools.hidden = false;
      more.addEventListener("click", () => { whole = !whole; draw(); });
    }
    if (rows.length > 1) [...table.tHead.rows[0].cells].forEach((head, i) => {
      const button = make("button", { type: "button", textContent: head.textContent });
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const key = (row) => row.cells[i].dataset.v === undefined ? null : Number(row.cells[i].dataset.v);
        const numbers = rows.some((row) => key(row) !== null);
        rows.sort((a, b) => {
          if (!numbers) return (up ? 1 : -1) * a.cells[i].textContent.localeCompare(b.cells[i].textContent);
          const x = key(a), y = key(b);
          if (x === null || y === null) return (x === null) - (y === null);
          return (up ? 1 : -1) * (x - y);
        });
        body.append(...rows);
        draw();
      });
    });
    draw();
  }

  // The reader: filters, order, pages.
  for (const reader of all(".reader")) {
    const articles = all("article", reader), size = 8, tools = reader.querySelector(".tools");
    const pager = reader.querySelector(".pager"), count = reader.querySelector(".count");
    if (!articles.length) continue;
    tools.hidden = false;
    const facts = new Map(articles.map((a, i) => [a, { traits: JSON.parse(a.dataset.traits), orders: JSON.parse(a.dataset.orders), i }]));
    const selects = all("select[data-trait]", tools), order = tools.querySelector("select[data-order]");
    const find = tools.querySelector("[data-find]");
    let page = 0;
    const draw = () => {
      const words = find.value.trim().toLowerCase();
      const fitting = articles.filter((a) =>
        selects.every((s) => !s.value || facts.get(a).traits[s.dataset.trait] === s.value) &&
        (!words || a.textContent.toLowerCase().includes(words)));
      const [name, way] = order && order.value ? order.value.split("|") : ["", "1"];
      const value = (a) => name ? facts.get(a).orders[name] ?? Infinity : facts.get(a).i;
      fitting.sort((a, b) => Number(way) * (value(a) - value(b)) || facts.get(a).i - facts.get(b).i);
      const pages = Math.max(1, Math.ceil(fitting.length / size));
      page = Math.max(0, Math.min(page, pages - 1));
      for (const article of articles) article.hidden = true;
      fitting.slice(page * size, page * size + size).forEach((article) => { article.hidden = false; pager.before(article); });
      count.textContent = fitting.length === articles.length ? `${articles.length} passages` : `${fitting.length} of ${articles.length} passages`;
      pager.hidden = pages < 2;
      pager.querySelector("span").textContent = `${page + 1} of ${pages}`;
      pager.querySelector('[data-go="-1"]').disabled = page === 0;
      pager.querySelector('[data-go="1"]').disabled = page === pages - 1;
    };
    tools.addEventListener("input", () => { page = 0; draw(); });
    pager.addEventListener("click", (event) => {
      const by = Number(event.target.dataset.go);
      if (by) { page += by; draw(); reader.scrollIntoView({ block: "start" }); }
    });
    draw();
  }
  for (const mark of all("mark[data-tip]")) {
    mark.tabIndex = 0;
    const show = () => tell(mark.dataset.tip, mark.getBoundingClientRect());
    mark.addEventListener("pointerenter", show);
    mark.addEventListener("focus", show);
    mark.addEventListener("pointerleave", hide);
    mark.addEventListener("blur", hide);
  }

  // Theme, the section that is being read, folded parts on paper.
  const theme = document.querySelector(".theme"), themes = ["system", "light", "dark"];
  theme.hidden = false;
  const wear = (next) => {
    if (next === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    theme.textContent = `Theme: ${next}`;
  };
  const told = () => {
    const name = /^#theme=(.+)$/.exec(location.hash)?.[1];
    if (themes.includes(name)) wear(name);
  };
  // The workbench, which shows the report in a frame, says its own theme in the address.
  told();
  addEventListener("hashchange", told);
  theme.addEventListener("click", () => {
    wear(themes[(themes.indexOf(document.documentElement.dataset.theme || "system") + 1) % 3]);
  });
  const links = new Map(all(".side a").map((a) => [a.hash.slice(1), a]));
  const sections = all("main > section");
  const here = () => {
    const at = sections.filter((s) => s.getBoundingClientRect().top < innerHeight * 0.35).pop();
    for (const [id, link] of links) {
      const on = Boolean(at) && id === at.id;
      link.classList.toggle("here", on);
      if (on) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    }
  };
  addEventListener("scroll", here, { passive: true });
  here();
  let folded = [];
  addEventListener("beforeprint", () => { folded = all("details:not([open])"); for (const d of folded) d.open = true; });
  addEventListener("afterprint", () => { for (const d of folded) d.open = false; });
})();
