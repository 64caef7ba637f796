document.addEventListener("DOMContentLoaded", () => {
  // The buttons that unfold the navigation have no name in the theme, so that a screen reader cannot announce them.
  for (const button of document.querySelectorAll("nav details > summary")) {
    const link = button.closest("li")?.querySelector("a");
    button.setAttribute("aria-label", `Pages below ${link?.textContent.trim() ?? "this one"}`);
  }
});

// What scrolls on its own can be scrolled with the keyboard, too. Pictures have their size only once they are loaded.
for (const event of ["load", "resize"]) {
  window.addEventListener(event, () => {
    for (const wide of document.querySelectorAll("div.formula, .bd-article :has(> img.wide)")) {
      if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0;
      else wide.removeAttribute("tabindex");
    }
  });
}
