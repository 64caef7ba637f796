// The buttons that unfold the navigation have no name in the theme, so that a screen reader cannot announce them.
document.addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll("nav details > summary")) {
    const link = button.closest("li")?.querySelector("a");
    button.setAttribute("aria-label", `Pages below ${link?.textContent.trim() ?? "this one"}`);
  }
});
