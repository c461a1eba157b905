"""Where the nodes of a graph go and how its edges run: layers from left to right.

The classic four steps (Sugiyama): layers by the longest way, the order within each layer by
barycentres, positions by pulling neighbours level, and edges through the gaps that were kept for
them. Parts that are not connected are packed beside one another. The same graph always gives the
same picture.
"""

from headway.web.drawing.layout.picture import Layout, Size, lay_out

__all__ = ["Layout", "Size", "lay_out"]
