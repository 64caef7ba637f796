// A section that has moved: its old page has a link to its new place, which ends in the same anchor.
document.addEventListener("DOMContentLoaded", () => {
  if (!location.hash || document.getElementById(location.hash.slice(1))) return;
  const links = [...document.querySelectorAll(".bd-article a")];
  const moved = links.find((each) => each.hash === location.hash && each.pathname !== location.pathname);
  if (moved) location.replace(moved.href);
});

document.addEventListener("DOMContentLoaded", () => {
  // The buttons that unfold the navigation have no name in the theme, so that a screen reader cannot announce them.
  for (const button of document.querySelectorAll("nav details > summary")) {
    const link = button.closest("li")?.querySelector("a");
    button.setAttribute("aria-label", `Pages below ${link?.textContent.trim() ?? "this one"}`);
  }
});

// Elements with a scroll bar of their own can also be scrolled with the keyboard. The size of a picture is known once it is loaded.
for (const event of ["load", "resize"]) {
  window.addEventListener(event, () => {
    for (const wide of document.querySelectorAll("div.formula, .bd-article :has(> img.wide)")) {
      if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0;
      else wide.removeAttribute("tabindex");
    }
  });
}
