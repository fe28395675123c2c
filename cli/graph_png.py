"""SVG to PNG, by a library without any need of the system's but fonts."""

from delayctl.cli.graph_cards import MONO_FONTS, SANS_FONTS, text
from delayctl.topology.errors import DelayctlError

_ZOOM = 2  # Sharp on screens of today, and on paper.
_SHEET = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">{}</svg>'


def png(svg: str) -> bytes:
    """Draw an SVG, or raise DelayctlError where it can't be done here."""
    try:
        from resvg_py import svg_to_bytes  # noqa: PLC0415 (needed for this alone)
    except ImportError as error:
        fix = "pip install 'delayctl[graph]', or write SVG, which needs nothing"
        raise DelayctlError("resvg-py, which draws PNG, is not installed", fix=fix) from error
    for fonts in (MONO_FONTS, SANS_FONTS):
        letter = text(2, 16, "M", size=16, fill="#000", family=fonts)
        # A letter that leaves no trace: without fonts all texts would be missing, and nobody would be told.
        if svg_to_bytes(svg_string=_SHEET.format(letter)) == svg_to_bytes(svg_string=_SHEET.format("")):
            fix = "install some, such as Debian's fonts-dejavu-core, or write SVG, which needs none here"
            raise DelayctlError(f"there is no font on this machine to write a PNG with: none of {fonts}", fix=fix)
    return bytes(svg_to_bytes(svg_string=svg, zoom=_ZOOM))
