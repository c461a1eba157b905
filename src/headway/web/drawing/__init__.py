"""Pictures for the dashboard: pure functions from plain values to SVG.

Nothing here reads or waits. Colours and strokes are classes of ``static/drawing.css``; whatever
text a picture shows was escaped by :func:`headway.web.drawing.markup.element`. Charts that stretch
with the page measure across in per cent and down in pixels, so that their text keeps its size.
"""
