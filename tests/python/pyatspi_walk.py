"""Walks the first window with the given title by pyatspi as often as asked and prints the milliseconds of each walk.

What is read for each node is what a snapshot shows: role, name, states, extents, actions, text and value.
"""

import sys
import time

import pyatspi


def find(title):
    for application in pyatspi.Registry.getDesktop(0):
        for window in application or ():
            if window is not None and window.name == title:
                return window
    raise SystemExit(f"no window is called {title}")


def look(node):
    node.getRole(), node.name, node.description, node.getState().getStates()
    interfaces = pyatspi.listInterfaces(node)
    if "Component" in interfaces:
        node.queryComponent().getExtents(pyatspi.WINDOW_COORDS)
    if "Action" in interfaces:
        action = node.queryAction()
        for index in range(action.nActions):
            action.getName(index)
    if "Text" in interfaces:
        text = node.queryText()
        text.getText(0, text.characterCount)
    if "Value" in interfaces:
        node.queryValue().currentValue


def walk(root):
    waiting, seen = [root], 0
    while waiting:
        node = waiting.pop()
        look(node)
        seen += 1
        waiting.extend(child for child in node if child is not None)
    return seen


title, times = sys.argv[1], int(sys.argv[2])
window = find(title)
# What the client library remembers of an earlier walk would be a walk that was not made.
window.clearCache() if hasattr(window, "clearCache") else None
for _ in range(times):
    began = time.monotonic()
    seen = walk(window)
    print(seen, (time.monotonic() - began) * 1000)
