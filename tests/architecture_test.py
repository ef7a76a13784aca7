"""The house rules: who may import whom, who may touch a heavy library, and how long things may get."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "earned"
FILES = sorted(PACKAGE.rglob("*.py"))

LAYERS = [
    {"vocabulary", "recipe_file", "recipe", "pretrain_recipe", "errors", "randomness"},
    {"algorithms", "problems", "policy", "sandbox", "distributed"},
    {"rollouts", "rewards", "diagnostics", "records", "optimization"},
    {"training", "reward_model", "evaluation"},
    {"dashboard", "audit"},
    {
        "api",
        "assembly",
        "measure",
        "observer",
        "preflight",
        "reward_probe",
        "sampling",
        "screening",
        "series",
        "task",
        "verification",
    },
    {"cli"},
    {"__main__"},
]
LAYER = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
SAME_LAYER = {
    ("recipe_file", "errors"),
    ("recipe", "recipe_file"),
    ("pretrain_recipe", "recipe_file"),
    ("api", "observer"),
    ("api", "assembly"),
    ("api", "preflight"),
    ("api", "reward_probe"),
    ("api", "task"),
    ("assembly", "task"),
    ("measure", "task"),
    ("preflight", "assembly"),
    ("reward_probe", "task"),
    ("sampling", "task"),
    ("screening", "task"),
    ("series", "api"),
    ("series", "observer"),
}
"""A wrong recipe is an error; the files of layer 5 are one room, apart for their length."""
ONLY_IN = {
    "transformers": "policy/",
    "tokenizers": "policy/",
    "vllm": "rollouts/vllm_engine.py",
    "gguf": "policy/",
    # A wheel is fetched by pip, which has no interface inside Python.
    "subprocess": ("sandbox/", "distributed/", "policy/wheel.py"),
    "multiprocessing": ("sandbox/", "distributed/"),
    "starlette": "dashboard/",
    "uvicorn": "dashboard/",
    "datasets": "problems/",
    "reasoning_gym": ("problems/", "rewards/"),
    "pyarrow": ("problems/", "records/parquet.py"),
}
WITHOUT_TORCH = [
    "earned",
    "earned.recipe",
    "earned.recipe_file",
    "earned.cli.main",
    "earned.cli.algorithms",
    "earned.cli.problems",
    "earned.cli.evaluate",
    "earned.cli.explain",
    "earned.cli.models",
    "earned.cli.runs",
    "earned.cli.check_reward",
    "earned.cli.sample",
    "earned.cli.screen",
    "earned.cli.verify",
    "earned.records.reader",
    "earned.records.writer",
    "earned.reward_probe",
]
NEVER_AUDIT = {"training", "rewards", "rollouts", "reward_model"}
LATE_IMPORT_ROOMS = {"cli"}
"""Commands import `api` when they run, so that help needs no torch."""
MAX_FILE, MAX_FUNCTION, MAX_PARAMETERS = 400, 60, 7


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path, *, late: bool = False) -> list[str]:
    """Return the modules a file imports at module level, or with `late` inside functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {n for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for n in ast.walk(f)}
    typing_only = {
        n for b in ast.walk(tree) if isinstance(b, ast.If) and "TYPE_CHECKING" in ast.dump(b.test) for n in ast.walk(b)
    }
    found = []
    for node in ast.walk(tree):
        if node in typing_only or (node in inside) != late:
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module] + [f"{node.module}.{a.name}" for a in node.names if node.module == "earned"]
    return found


def our_rooms(path: Path) -> set[str]:
    names = {name.split(".")[1] for name in imports(path) if name.startswith("earned.")}
    return {name for name in names if name in LAYER} - {room_of(path)}


def breaches(path: Path) -> list[str]:
    room = room_of(path)
    level = LAYER.get(room, len(LAYERS))
    return [
        f"{path.name} ({room}) imports {other}"
        for other in our_rooms(path)
        if LAYER[other] >= level and (room, other) not in SAME_LAYER
    ]


def test_every_room_has_its_layer():
    assert {room_of(path) for path in FILES} - {"__init__"} <= set(LAYER)


def test_rooms_import_only_lower_layers():
    assert [breach for path in FILES for breach in breaches(path)] == []


def test_the_layer_rule_can_fail(tmp_path):
    breaking = PACKAGE / "policy" / "imaginary.py"
    source = tmp_path / "imaginary.py"
    source.write_text("from earned.training.loop import train\n")
    names = {name.split(".")[1] for name in imports(source)}
    assert any(LAYER[name] >= LAYER[room_of(breaking)] for name in names)


def test_the_held_out_judge_cannot_leak_into_the_reward():
    assert [path for path in FILES if room_of(path) in NEVER_AUDIT and "audit" in our_rooms(path)] == []


def test_algorithms_are_pure():
    allowed = {"torch", "earned.algorithms", "earned.errors"} | set(sys.stdlib_module_names)
    for path in (PACKAGE / "algorithms").glob("*.py"):
        for name in imports(path) + imports(path, late=True):
            assert any(name == a or name.startswith(f"{a}.") for a in allowed), f"{path.name} imports {name}"


def test_no_late_import_of_our_own_code():
    late = [
        (str(path.relative_to(PACKAGE)), name)
        for path in FILES
        for name in imports(path, late=True)
        if name.startswith("earned") and room_of(path) not in LATE_IMPORT_ROOMS
    ]
    assert late == []


@pytest.mark.parametrize("library", ONLY_IN)
def test_heavy_libraries_have_one_importer(library):
    homes = ONLY_IN[library] if isinstance(ONLY_IN[library], tuple) else (ONLY_IN[library],)
    strangers = [
        str(path.relative_to(PACKAGE))
        for path in FILES
        if library in {name.split(".")[0] for name in imports(path) + imports(path, late=True)}
        and not any(str(path.relative_to(PACKAGE)).startswith(home) for home in homes)
    ]
    assert strangers == []


@pytest.mark.parametrize("module", WITHOUT_TORCH)
def test_imports_without_torch(module):
    code = f"import sys, {module}; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_files_functions_and_parameters_stay_small():
    too_big = []
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        if len(text.splitlines()) > MAX_FILE:
            too_big.append(f"{path.name}: {len(text.splitlines())} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                where = f"{path.relative_to(PACKAGE)}:{node.name}"
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                count = len([a for a in arguments if a.arg != "self"])
                if (node.end_lineno or 0) - node.lineno + 1 > MAX_FUNCTION:
                    too_big.append(f"{where}: too long")
                if count > MAX_PARAMETERS and room_of(path) != "cli":
                    too_big.append(f"{where}: {count} parameters")
    assert too_big == []


def test_the_loop_fits_one_page():
    source = (PACKAGE / "training" / "loop.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    docstrings = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    code = [
        line
        for number, line in enumerate(source.splitlines(), start=1)
        if line.strip() and not line.strip().startswith("#") and number not in docstrings
    ]
    assert len(code) <= 150
