"""Changes a parsed template so that its text knows its lines, and so that nothing it makes goes unweighed."""

# ruff: noqa: N802 (Visitors are named after Jinja2's nodes.)

from typing import TypeVar

from jinja2 import nodes
from jinja2.exceptions import TemplateSyntaxError
from jinja2.sandbox import SandboxedEnvironment
from jinja2.visitor import NodeTransformer

# Characters that YAML does not allow, so that no text of a user's own looks like a mark.
BEGIN, END = "\x01", "\x02"

_CALL = 10  # A call costs about as much as ten turns of a loop.

AnyNode = TypeVar("AnyNode", bound=nodes.Node)


class OneFileOnly(TemplateSyntaxError):
    """A template asks for another file."""


def instrument(tree: nodes.Template, environment: SandboxedEnvironment) -> nodes.Template:
    """Put line marks into the text and checks around what grows."""
    _Instrument().visit(tree)
    tree.set_environment(environment)
    return tree


class _Instrument(NodeTransformer):
    """What a macro, a `set` block or a filter block writes is left without marks: it may be measured or compared."""

    def __init__(self) -> None:
        self._captured = 0

    def visit_Output(self, node: nodes.Output) -> nodes.Output:
        """Weigh what is written, and mark where each line of the text comes from."""
        self.generic_visit(node)
        if self._captured:
            node.nodes = [child if _is_text(child) else _filtered(child, "spelt!") for child in node.nodes]
        else:
            node.nodes = _marked(node.nodes)
        return node

    def visit_For(self, node: nodes.For) -> nodes.For:
        """Count every turn."""
        self.generic_visit(node)
        node.body.insert(0, _turn(node, _CALL if node.recursive else 1))
        return node

    def visit_Macro(self, node: nodes.Macro) -> nodes.Macro:
        """Count every call."""
        self._capture(node)
        node.body.insert(0, _turn(node, _CALL))
        return node

    def visit_CallBlock(self, node: nodes.CallBlock) -> nodes.CallBlock:
        """Count every call."""
        self._capture(node)
        node.body.insert(0, _turn(node, _CALL))
        return node

    def visit_AssignBlock(self, node: nodes.AssignBlock) -> nodes.AssignBlock:
        """Leave the text as it is."""
        return self._capture(node)

    def visit_FilterBlock(self, node: nodes.FilterBlock) -> nodes.FilterBlock:
        """Leave the text as it is."""
        return self._capture(node)

    def visit_List(self, node: nodes.List) -> nodes.Expr:
        """Weigh what is made."""
        self.generic_visit(node)
        return _filtered(node, "made!")

    def visit_Dict(self, node: nodes.Dict) -> nodes.Expr:
        """Weigh what is made."""
        self.generic_visit(node)
        return _filtered(node, "made!")

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Expr:
        """Weigh what is made; a tuple of names to be set makes nothing."""
        self.generic_visit(node)
        return _filtered(node, "made!") if node.ctx == "load" else node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Expr:
        """Weigh the parts before they are put together."""
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), "joined!")

    def visit_Include(self, node: nodes.Node) -> nodes.Node:
        """Refuse what needs another file."""
        raise OneFileOnly("a topology is one file: no include, import or extends", node.lineno)

    visit_Import = visit_FromImport = visit_Extends = visit_Include  # noqa: N815 (as Jinja2 spells its nodes)

    def _capture(self, node: AnyNode) -> AnyNode:
        self._captured += 1
        self.generic_visit(node)
        self._captured -= 1
        return node


def mark(line: int) -> str:
    """Says that what follows was written by this line of the file."""
    return f"{BEGIN}{line}{END}"


def _marked(children: list[nodes.Expr]) -> list[nodes.Expr]:
    """The parts of an output, with a mark wherever counting line breaks would not lead to the line of the file."""
    marked: list[nodes.Expr] = []
    counted = None
    for child in children:
        line = child.lineno
        if line != counted:
            marked.append(nodes.TemplateData(mark(line), lineno=line))
        if isinstance(child, nodes.TemplateData):
            marked.append(child)
            counted = line + child.data.count("\n")  # Jinja2 writes every line break like this.
        else:
            marked.append(_filtered(child, "written!", nodes.Const(line, lineno=line)))
            counted = line
    return marked


def _is_text(node: nodes.Expr) -> bool:
    return isinstance(node, nodes.TemplateData)


def _turn(node: nodes.For | nodes.Macro | nodes.CallBlock, turns: int) -> nodes.Stmt:
    letters = sum(len(text.data) for part in node.body for text in part.find_all(nodes.TemplateData))
    counted = _filtered(nodes.Const(letters, lineno=node.lineno), "turn!", nodes.Const(turns, lineno=node.lineno))
    return nodes.ExprStmt(counted, lineno=node.lineno)


def _filtered(node: nodes.Expr, name: str, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, list(args), [], None, None, lineno=node.lineno)
