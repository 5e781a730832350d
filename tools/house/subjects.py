"""Commit subjects have at most 72 characters, from the commit on that added this file. A checkout without history, as a
shallow clone, has none to look at.
"""
from house.sources import Fault

MAX_SUBJECT = 72


def subjects(tree):
    """The commits since this file whose subjects are too long."""
    if not tree.has_git:
        return []
    begin = tree.git("log", "--diff-filter=A", "--format=%H", "--", "tools/house/subjects.py").split()
    if not begin:
        return []
    lines = tree.git("log", "--no-merges", "--format=%H %s", f"{begin[-1]}..HEAD").splitlines()
    found = [line.split(" ", 1) for line in lines]
    return [Fault("subject", commit[:12], len(subject), f"{commit[:12]}: {subject}: over {MAX_SUBJECT} characters")
            for commit, subject in found
            if len(subject) > MAX_SUBJECT]
