//! The Python module's tables in pyarrow and pandas.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const CODE: &str = r#"
import sys
import devprof
import pandas
import pyarrow

tables = devprof.trace(sys.argv[1])
for table in tables.values():
    assert table.to_arrow().num_rows == len(table.to_pandas()) == len(table), table.columns
dispatches = tables["dispatch"]
rows = list(dispatches)
assert dispatches.to_arrow().to_pylist() == rows and len(rows) == 5
frame = dispatches.to_pandas()
assert frame["start"].tolist() == dispatches["start"] and str(frame["start"].dtype) == "Int64"
print((frame["end"] - frame["start"]).groupby(frame["kernel_name"]).sum().to_dict())

# Numbers stay exact next to missing ones, and up to 64 bits.
table = devprof.Table()
for row in ({"a": 2**62 + 1}, {"b": 2**63 + 1, "c": "x"}, {"d": [1, 2], "e": True}):
    table._add(row)
missing = {name: [None if value is pandas.NA or value != value else value for value in column] for name, column in table.to_pandas().items()}
assert table.to_arrow().to_pydict() == table.columns == missing, (missing, table.columns)
"#;

#[test]
#[ignore = "needs pyarrow and pandas from PyPI; tools/test runs it"]
fn tables_in_pyarrow_and_pandas() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = env::var_os("CARGO_TARGET_DIR").map_or(repository.join("target"), PathBuf::from);
    let packages = target.join("python-tables");
    let install = "set -eu; . src/cli/once.sh; once \"$1\" python3 -m pip install --quiet --root-user-action ignore --no-deps --target \"$1\" --require-hashes -r tools/requirements/tables.txt";
    let status = Command::new("bash")
        .args(["-c", install, "bash"])
        .arg(&packages)
        .current_dir(&repository)
        .status();
    assert!(
        status.unwrap().success(),
        "cannot install pyarrow and pandas"
    );
    let program = Path::new(env!("CARGO_BIN_EXE_devprof"));
    let mut path = program.parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(env::var_os("PATH").unwrap_or_default());
    let modules = env::join_paths([repository.join("src/python"), packages]);
    let done = Command::new("python3")
        .args(["-B", "-W", "error", "-c", CODE])
        .arg(repository.join("fixtures/version-1.trace"))
        .env("PYTHONPATH", modules.unwrap())
        .env("PATH", path)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{errors}");
    let output = String::from_utf8_lossy(&done.stdout);
    // As `devprof stats` shows them.
    let expected =
        "{'__amd_rocclr_initHeap': 326600, 'add(int*, int)': 165940, 'scale(int*, int)': 132130}\n";
    assert_eq!(output, expected);
}
