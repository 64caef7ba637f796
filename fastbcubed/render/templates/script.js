"use strict";
(() => {
  const all = (what, within = document) => [...within.querySelectorAll(what)];
  const made = (tag, text, parent) => {
    const element = document.createElement(tag);
    element.textContent = text;
    if (parent) parent.append(element);
    return element;
  };
  const value = (row, at) => {
    const cell = row.cells[at];
    if (!cell) return "";
    return cell.dataset.v === undefined ? cell.textContent.trim() : cell.dataset.v === "" ? NaN : Number(cell.dataset.v);
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return isNaN(a) ? (isNaN(b) ? 0 : 1) : isNaN(b) ? -1 : a - b;
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  };
  for (const table of all("table.sortable")) {
    const heads = all("thead th", table);
    heads.forEach((head, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((each) => each.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = all("tr", table.tBodies[0]).map((row) => [value(row, at), row]);
        rows.sort(([a], [b]) => (down ? compare(b, a) : compare(a, b)));
        table.tBodies[0].append(...rows.map(([, row]) => row));
      });
    });
  }
  for (const list of all(".clusters")) {
    const tools = document.createElement("div");
    tools.className = "tools";
    const field = document.createElement("input");
    field.type = "search";
    field.placeholder = "Filter by any text";
    field.setAttribute("aria-label", "Filter " + list.dataset.of);
    tools.append(field);
    const every = made("button", "Open all", tools);
    every.type = "button";
    const told = made("span", "", tools);
    told.className = "small";
    told.setAttribute("role", "status");
    const clusters = all("details.cluster", list);
    field.addEventListener("input", () => {
      const words = field.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const each of clusters) {
        const text = each.textContent.toLocaleLowerCase();
        each.hidden = !words.every((word) => text.includes(word));
        shown += each.hidden ? 0 : 1;
      }
      told.textContent = words.length ? shown + " of " + clusters.length + " shown" : "";
    });
    every.addEventListener("click", () => {
      const open = clusters.some((each) => !each.open);
      clusters.forEach((each) => (each.open = open));
      every.textContent = open ? "Close all" : "Open all";
    });
    list.prepend(tools);
  }
  const reveal = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && document.getElementById(id);
    if (target && target.tagName === "DETAILS") {
      target.open = true;
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", reveal);
  reveal();
  const opened = [];
  addEventListener("beforeprint", () => {
    for (const each of all("details.printed:not([open])")) {
      opened.push(each);
      each.open = true;
    }
  });
  addEventListener("afterprint", () => {
    for (const each of opened.splice(0)) each.open = false;
  });
  const save = document.getElementById("save");
  save.hidden = false;
  save.addEventListener("click", () => {
    const text = document.getElementById("data").textContent;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = "report.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
})();
