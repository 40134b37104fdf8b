"""tests.py DATABASE: prints what each test ran, one test per line, from the database of `devprof cover --per-test`: the
functions, and the ranges of lines."""
import sqlite3
import sys

database = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
FUNCTIONS = "SELECT name FROM function JOIN test_function ON function = id WHERE test = ? ORDER BY name"
LINES = "SELECT path, first, last FROM test_line JOIN file ON file = id WHERE test = ? ORDER BY path, first"
(complete,) = database.execute("SELECT value FROM meta WHERE key = 'complete'").fetchone()
print("complete" if complete == "1" else "not complete")
for test, name in database.execute("SELECT id, name FROM test ORDER BY name").fetchall():
    functions = [function.partition("(")[0] for (function,) in database.execute(FUNCTIONS, [test])]
    lines = [f"{path.rpartition('/')[2]}:{first}-{last}" for path, first, last in database.execute(LINES, [test])]
    print(f"[{name}]", *functions, *lines)
