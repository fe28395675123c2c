"""Colours of pictures: what each part and each change looks like, on light and on dark."""

from dataclasses import dataclass

from delayctl.topology.picture import Mark, Role


@dataclass(frozen=True, slots=True)
class Theme:
    """One set of colours; `levels` are pairs of ink and tint, taken in turn."""

    sheet: str
    card: str
    frame: str
    ink: str
    soft: str
    line: str
    neutral: str
    roles: dict[Role, str]
    levels: tuple[tuple[str, str], ...]
    marks: dict[Mark, tuple[str, str]]


LIGHT = Theme(
    sheet="#ffffff", card="#ffffff", frame="#f8fafc", ink="#0f172a", soft="#526077", line="#cbd5e1", neutral="#94a3b8",
    roles={
        "publishers": "#475569", "source": "#2563eb", "level": "#94a3b8", "ladder": "#94a3b8", "exit": "#1e293b",
        "queue": "#059669", "exchange": "#2563eb", "park": "#b91c1c", "net": "#b91c1c",
    },
    levels=(
        ("#b45309", "#fef3c7"), ("#0f766e", "#ccfbf1"), ("#6d28d9", "#ede9fe"),
        ("#be123c", "#ffe4e6"), ("#1d4ed8", "#dbeafe"), ("#4d7c0f", "#ecfccb"),
    ),
    marks={
        "create": ("#15803d", "#dcfce7"), "update": ("#a16207", "#fef9c3"), "replace": ("#c2410c", "#ffedd5"),
        "delete": ("#b91c1c", "#fee2e2"), "move": ("#1d4ed8", "#dbeafe"), "refused": ("#9d174d", "#fce7f3"),
        "missing": ("#b91c1c", "#fee2e2"), "foreign": ("#526077", "#f1f5f9"),
    },
)  # fmt: skip

DARK = Theme(
    sheet="#0b1220", card="#111a2c", frame="#0e1627", ink="#e5edf8", soft="#9fb0c8", line="#2b3a55", neutral="#64748b",
    roles={
        "publishers": "#94a3b8", "source": "#60a5fa", "level": "#64748b", "ladder": "#64748b", "exit": "#cbd5e1",
        "queue": "#34d399", "exchange": "#60a5fa", "park": "#f87171", "net": "#f87171",
    },
    levels=(
        ("#fbbf24", "#3a2708"), ("#5eead4", "#0f302e"), ("#c4b5fd", "#2a1f52"),
        ("#fda4af", "#431021"), ("#93c5fd", "#16294f"), ("#bef264", "#1e2f0a"),
    ),
    marks={
        "create": ("#4ade80", "#0d2f1b"), "update": ("#facc15", "#332a08"), "replace": ("#fb923c", "#3a1f0b"),
        "delete": ("#f87171", "#3b1416"), "move": ("#93c5fd", "#16294f"), "refused": ("#f9a8d4", "#3f1230"),
        "missing": ("#f87171", "#3b1416"), "foreign": ("#9fb0c8", "#1a2438"),
    },
)  # fmt: skip

THEMES = {"light": LIGHT, "dark": DARK}


def _of_page(name: str) -> str:
    return f"var(--map-{name})"


# Whatever a page's own style says; `page_style` gives it the colours of the others.
PAGE = Theme(
    sheet=_of_page("sheet"),
    card=_of_page("card"),
    frame=_of_page("frame"),
    ink=_of_page("ink"),
    soft=_of_page("soft"),
    line=_of_page("line"),
    neutral=_of_page("neutral"),
    roles={role: _of_page(f"role-{role}") for role in LIGHT.roles},
    levels=tuple((_of_page(f"level-ink-{n}"), _of_page(f"level-tint-{n}")) for n in range(1, len(LIGHT.levels) + 1)),
    marks={mark: (_of_page(f"mark-{mark}-ink"), _of_page(f"mark-{mark}-tint")) for mark in LIGHT.marks},
)


def page_style(theme: Theme) -> dict[str, str]:
    """The colours of a theme by the names that `PAGE` has for them."""
    return {
        name.removeprefix("var(").removesuffix(")"): colour
        for name, colour in zip(_colours(PAGE), _colours(theme), strict=True)
    }


def _colours(theme: Theme) -> list[str]:
    plain = [theme.sheet, theme.card, theme.frame, theme.ink, theme.soft, theme.line, theme.neutral]
    pairs = [*theme.levels, *(theme.marks[mark] for mark in LIGHT.marks)]
    return [*plain, *(theme.roles[role] for role in LIGHT.roles), *(colour for pair in pairs for colour in pair)]


MEANINGS: dict[Mark, str] = {
    "create": "added",
    "update": "changed",
    "replace": "replaced",
    "delete": "removed",
    "move": "led elsewhere",
    "refused": "refused",
    "missing": "missing on the broker",
    "foreign": "not in the file",
}
LIVE_MEANINGS = {**MEANINGS, "update": "not as in the file"}
