"""The todo list of a rebase of git's: what it is at, and what is still to come."""

from scripts.git import Repository


def under_way(repo: Repository) -> bool:
    return (repo.git_dir / "rebase-merge").exists()


def last(repo: Repository) -> str:
    """The line of the todo list at which a rebase stands, or which was done last."""
    done = repo.git_dir / "rebase-merge" / "done"
    lines = done.read_text(errors="replace").split("\n") if done.exists() else []
    return next((line for line in reversed(lines) if line.strip()), "")


def command(repo: Repository) -> str:
    return last(repo).partition(" ")[0]


def is_due(repo: Repository) -> bool:
    """Whether the commit at which a rebase stands could not begin, so that git will try again."""
    rest = repo.git_dir / "rebase-merge" / "git-rebase-todo"
    commit = repo.resolve("REBASE_HEAD")
    return commit is not None and commit in rest.read_text(errors="replace")
