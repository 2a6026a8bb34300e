#!/usr/bin/env python3
"""Lists the public interface of the crate from its documentation, and compares it with tests/public-api.txt.

`cargo doc --no-deps` must have run. With `--write` the list is written instead.
"""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
pages = root / "target/doc/hintflow"
listed = root / "tests/public-api.txt"
KINDS = ("struct", "enum", "trait", "fn", "constant", "type", "macro")

names = []
for page in sorted(pages.rglob("*.html")):
    kind = page.name.split(".")[0]
    if kind not in KINDS or page.name.count(".") != 2:
        continue
    path = "::".join([*page.relative_to(pages).parts[:-1], page.name.split(".")[1]])
    text = page.read_text(encoding="utf-8")
    if "Redirection" in text[:400]:
        continue
    names.append(f"{kind} {path}")
    # What follows are methods of traits, which are the traits' own.
    own = re.split('id="(?:trait|synthetic|blanket)-implementations"|id="deref-methods', text)[0]
    for what, member in re.findall(r'id="(method|tymethod|structfield|variant|associatedconstant)\.(\w+)(?=")', own):
        what = {"tymethod": "method", "structfield": "field", "associatedconstant": "constant"}.get(what, what)
        names.append(f"    {path}: {what} {member}")
text = "\n".join(dict.fromkeys(names)) + "\n"

if "--write" in sys.argv:
    listed.write_text(text, encoding="utf-8")
    sys.exit()
known = listed.read_text(encoding="utf-8")
if text != known:
    old, new = set(known.splitlines()), set(text.splitlines())
    for name in sorted(old - new):
        print("gone:", name.strip())
    for name in sorted(new - old):
        print("new: ", name.strip())
    sys.exit("the public interface is another than tests/public-api.txt lists; if that is meant, run tests/public-api.py --write")
