"""python dist_info.py PYPROJECT SITE_PACKAGES: writes what pip would write of a package that make has installed."""

import pathlib
import sys
import tomllib


def main() -> None:
    """Name, version and entry points, as importlib.metadata looks for them."""
    project = tomllib.loads(pathlib.Path(sys.argv[1]).read_text())["project"]
    folder = pathlib.Path(sys.argv[2]) / f"{project['name']}-{project['version']}.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\nSummary: {project['description']}\n"
    )
    (folder / "INSTALLER").write_text("make\n")
    groups = {"console_scripts": project.get("scripts", {})} | project.get("entry-points", {})
    lines = []
    for group, names in groups.items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in names.items()), ""]
    (folder / "entry_points.txt").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
