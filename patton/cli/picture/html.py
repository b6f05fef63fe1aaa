"""A picture as one HTML page without any other file: SVG, tooltips, picking out.

The script only moves what is in the SVG already, so the page can be read without it.
"""

from __future__ import annotations

from html import escape

from patton.cli.picture.shapes import Picture
from patton.cli.picture.svg import to_svg

STYLE = """\
body { margin: 16px; background: #f1f5f9; font-family: sans-serif; }
svg { max-width: 100%; height: auto; border-radius: 8px; }
svg [data-tip]:hover { stroke: #0f172a; stroke-width: 1.5; }
svg.picking [data-tip] { opacity: 0.12; }
svg.picking [data-tip].picked { opacity: 1; }
#tip { position: fixed; display: none; max-width: 30em; padding: 6px 9px;
  border-radius: 5px; background: #0f172a; color: #f8fafc; font-size: 13px;
  pointer-events: none; white-space: pre-line; }
"""

SCRIPT = """\
const svg = document.querySelector("svg"), tip = document.querySelector("#tip");
for (const title of svg.querySelectorAll("path > title")) {
  title.parentNode.dataset.tip = title.textContent;
  title.remove();
}
svg.addEventListener("mousemove", (event) => {
  const words = event.target.dataset.tip || "";
  tip.style.display = words ? "block" : "none";
  tip.textContent = words;
  const right = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
  tip.style.left = right + "px";
  tip.style.top = event.clientY + 18 + "px";
});
svg.addEventListener("mouseleave", () => { tip.style.display = "none"; });
const owners = (shape) => (shape.dataset.of || "").split("|").filter(Boolean);
svg.addEventListener("mouseover", (event) => {
  const wanted = owners(event.target);
  svg.classList.toggle("picking", wanted.length > 0);
  for (const shape of svg.querySelectorAll("[data-of]")) {
    const picked = owners(shape).some((owner) => wanted.includes(owner));
    shape.classList.toggle("picked", picked);
  }
});
"""


def to_html(picture: Picture) -> str:
    """The text of an HTML file; equal pictures give equal texts."""
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{escape(picture.title)}</title>
<style>
{STYLE}</style>
</head>
<body>
{to_svg(picture, owners=True)}<div id="tip"></div>
<script>
{SCRIPT}</script>
</body>
</html>
"""
