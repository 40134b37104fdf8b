//! Trace files that are damaged at every byte in several ways, and cut off at every length, through the whole command
//! line in this process: what is wrong is said with its place, the exit status tells of it, and all else is exported.

use crate::files::*;
use clap::Parser;
use devprof_cli::{Cli, Colors, Console};
use std::fs;
use std::path::{Path, PathBuf};
use tracefile::format::{
    COUNTERS, Count, Counter, HEADER_SIZE, RECORD_SIZE, Record, checksum, flag,
};

/// A file of few records: two kernels with a dispatch each, and the API call that made them.
fn small() -> Vec<u8> {
    let mut records = named();
    records.push(call(1, 7, 10, 1500, 1700).seal());
    records.push(timed(dispatch(1, 0, 1, 1, 1), 1600, 2000, 3000).seal());
    records.push(timed(dispatch(2, flag::CLOCK_AGENT, 3, 2, 1), 1600, 2000, 3000).seal());
    file(&records)
}

/// The last records of [`small`].
const CALLS: usize = 1;
const DISPATCHES: usize = 2;

/// What a run of devprof was.
struct Run {
    status: u8,
    said: String,
    /// Of `export` the file, of `stats` what it prints.
    output: Vec<u8>,
}

/// Runs a verb on these bytes.
fn run(way: &[&str], bytes: &[u8], dir: &Path) -> Run {
    let file = dir.join("a.trace");
    fs::write(&file, bytes).unwrap();
    let (file, out) = (file.to_str().unwrap(), dir.join("out"));
    let to: &[&str] = match way[0] {
        "export" => &["-o", out.to_str().unwrap()],
        _ => &[],
    };
    let line = ["devprof"].iter().chain(way).chain(to).chain([&file]);
    let (mut printed, mut said) = (Vec::new(), String::new());
    let mut say = |line: &str| said += &format!("{line}\n");
    let mut console = Console {
        out: &mut printed,
        say: &mut say,
        colors: Colors::default(),
    };
    let status = devprof_cli::run(&Cli::parse_from(line), &mut console);
    let output = match fs::read(&out) {
        Ok(written) => {
            fs::remove_file(&out).unwrap();
            written
        }
        Err(_) => printed,
    };
    Run {
        status,
        said,
        output,
    }
}

/// The ways to read a trace that take little time.
const TEXT: [&[&str]; 4] = [
    &["export", "-f", "json"],
    &["export", "-f", "csv"],
    &["export", "-f", "perfetto"],
    &["stats", "--json"],
];
const DATABASE: &[&str] = &["export", "-f", "rocpd"];

/// In memory, where there is a place for that: tens of thousands of files are written.
fn memory(name: &str) -> PathBuf {
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return directory(name);
    }
    let dir = memory.join(format!("devprof-{name}-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// How many packets a Perfetto trace has: each is field 1 of the trace (0x0a), with its length.
fn packets(mut bytes: &[u8]) -> usize {
    let mut count = 0;
    while let [0x0a, rest @ ..] = bytes {
        let end = rest.iter().position(|byte| byte & 0x80 == 0).unwrap();
        let digits = rest[..=end].iter().rev();
        let length = digits.fold(0usize, |all, byte| all << 7 | usize::from(byte & 0x7f));
        bytes = &rest[end + 1 + length..];
        count += 1;
    }
    assert!(bytes.is_empty());
    count
}

/// How many dispatches and API calls are in the output, as far as the format tells.
fn exported(way: &[&str], run: &Run) -> (Option<usize>, Option<usize>) {
    let text = || std::str::from_utf8(&run.output).unwrap();
    match *way.last().unwrap() {
        "json" => {
            let of = |kind: &str| text().matches(&format!("\"type\":\"{kind}\"")).count();
            (Some(of("dispatch")), Some(of("call")))
        }
        "csv" => (Some(text().lines().count() - 1), None),
        "--json" => {
            let report: serde_json::Value = serde_json::from_slice(&run.output).unwrap();
            (report["dispatches"].as_u64().map(|n| n as usize), None)
        }
        _ => (None, None),
    }
}

/// What a file with one damaged byte has to lead to.
fn check(whole: &[u8], at: usize, way: &[&str], run: &Run) {
    let what = || format!("byte {at}, {way:?}, status {}:\n{}", run.status, run.said);
    let records = (whole.len() - HEADER_SIZE) / RECORD_SIZE;
    let counters = COUNTERS..COUNTERS + Count::ALL.len() * size_of::<Counter>();
    // The place that is told, and the records that are lost.
    let (status, place, lost) = match at {
        0..8 => (1, "it does not begin with \"DEVPROFT\"".to_owned(), None),
        8..12 => (1, "trace version ".to_owned(), None),
        12..COUNTERS => (1, format!("(bytes 0 to {COUNTERS})"), None),
        _ if counters.contains(&at) => {
            let counter = at - (at - COUNTERS) % size_of::<Counter>();
            (3, format!("byte {counter}: "), None)
        }
        COUNTERS..HEADER_SIZE => (0, String::new(), None),
        _ => {
            let record = (at - HEADER_SIZE) / RECORD_SIZE;
            let place = format!(
                "byte {}: a damaged record",
                HEADER_SIZE + record * RECORD_SIZE
            );
            (3, place, Some(record))
        }
    };
    assert_eq!(run.status, status, "{}", what());
    assert!(run.said.contains(&place), "{}", what());
    if status == 0 {
        assert_eq!(run.said, "", "{}", what());
    } else {
        let lines = run.said.lines();
        assert!(
            lines.clone().all(|line| line.contains("a.trace: ")),
            "{}",
            what()
        );
        // One thing is damaged, and is told first. With a piece of a name those behind it are lost.
        let places: Vec<_> = lines.filter(|line| line.contains(": byte ")).collect();
        assert!(places.len() <= 3, "{}", what());
        assert!(
            places.iter().take(1).all(|first| first.contains(&place)),
            "{}",
            what()
        );
    }
    if status == 1 {
        assert!(run.output.is_empty(), "{}", what());
        return;
    }
    let kept = |all: usize, first: usize| {
        all - usize::from(lost.is_some_and(|lost| (first..first + all).contains(&lost)))
    };
    let (dispatches, calls) = exported(way, run);
    if let Some(dispatches) = dispatches {
        assert_eq!(
            dispatches,
            kept(DISPATCHES, records - DISPATCHES),
            "{}",
            what()
        );
    }
    if let Some(calls) = calls {
        let first = records - DISPATCHES - CALLS;
        assert_eq!(calls, kept(CALLS, first), "{}", what());
    }
    if way.contains(&"perfetto") {
        assert!(packets(&run.output) > 1, "{}", what());
    }
}

#[test]
fn each_damaged_byte_is_told_with_its_place_and_the_rest_is_exported() {
    let dir = memory("damage");
    let whole = small();
    for way in TEXT {
        let run = run(way, &whole, &dir);
        assert_eq!((run.status, &*run.said), (0, ""), "{way:?}");
    }
    for at in 0..whole.len() {
        for (n, way) in TEXT.into_iter().enumerate() {
            // Most of the header's page has no meaning: one way to read each of its bytes does.
            if (COUNTERS + 128..HEADER_SIZE).contains(&at) && at % TEXT.len() != n {
                continue;
            }
            // Each byte is damaged in each of these ways.
            let damage = [0x01, 0x80, 0xff][(at + n) % 3];
            let mut bytes = whole.clone();
            bytes[at] ^= damage;
            check(&whole, at, way, &run(way, &bytes, &dir));
        }
    }
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn each_damaged_byte_is_told_by_the_database_too() {
    let dir = memory("damage-db");
    let whole = small();
    // A database takes its time: each tenth byte of what the header uses, each eleventh of the records.
    let header = (0..COUNTERS + 128).step_by(10);
    for at in header.chain((HEADER_SIZE..whole.len()).step_by(11)) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        check(&whole, at, DATABASE, &run(DATABASE, &bytes, &dir));
    }
    fs::remove_dir_all(dir).unwrap();
}

/// Makes the checksums of a file right again.
fn seal(bytes: &mut [u8]) {
    let crc = crc32fast::hash(&bytes[..COUNTERS - 4]).to_le_bytes();
    bytes[COUNTERS - 4..COUNTERS].copy_from_slice(&crc);
    for record in bytes[HEADER_SIZE..].chunks_exact_mut(RECORD_SIZE) {
        let crc = checksum(record).to_le_bytes();
        record[..4].copy_from_slice(&crc);
    }
}

#[test]
fn any_value_in_a_whole_record_is_exported_without_harm() {
    let dir = memory("values");
    let whole = small();
    let header = 12..COUNTERS;
    for at in header.chain(HEADER_SIZE..whole.len()) {
        let mut ways: Vec<_> = TEXT.into_iter().enumerate().collect();
        if at % 11 == 0 {
            ways.push((ways.len(), DATABASE));
        }
        for (n, way) in ways {
            let mut bytes = whole.clone();
            bytes[at] ^= [0x01, 0x80, 0xff][(at + n) % 3];
            seal(&mut bytes);
            let run = run(way, &bytes, &dir);
            let what = format!("byte {at}, {way:?}, status {}:\n{}", run.status, run.said);
            // The sizes in the header, and a clock of 0 ticks, leave nothing to be read.
            let refused = at < COUNTERS && run.status == 1;
            assert!(matches!(run.status, 0 | 3) || refused, "{what}");
            assert!(
                run.said.lines().all(|line| line.contains("a.trace: ")),
                "{what}"
            );
            if way.contains(&"perfetto") && !refused {
                assert!(packets(&run.output) > 1, "{what}");
            }
        }
    }
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_file_cut_off_anywhere_is_told_with_its_place_and_exported() {
    let dir = memory("cut");
    let whole = small();
    let records = (whole.len() - HEADER_SIZE) / RECORD_SIZE;
    for length in 0..whole.len() {
        let way = TEXT[length % TEXT.len()];
        let run = run(way, &whole[..length], &dir);
        let what = || {
            format!(
                "{length} bytes, {way:?}, status {}:\n{}",
                run.status, run.said
            )
        };
        if length < HEADER_SIZE {
            assert_eq!(run.status, 1, "{}", what());
            let place = match length {
                0..8 => "it does not begin with \"DEVPROFT\"".to_owned(),
                _ => format!("the file is truncated after {length} bytes, inside its header"),
            };
            assert!(run.said.contains(&place), "{}", what());
            assert!(run.output.is_empty(), "{}", what());
            continue;
        }
        let left = (length - HEADER_SIZE) / RECORD_SIZE;
        let place = format!(
            "byte {}: the file is truncated: {} of {records} records are missing",
            HEADER_SIZE + left * RECORD_SIZE,
            records - left
        );
        assert_eq!(run.status, 3, "{}", what());
        assert!(run.said.contains(&place), "{}", what());
        let first = records - DISPATCHES;
        if let (Some(dispatches), _) = exported(way, &run) {
            assert_eq!(dispatches, left.saturating_sub(first), "{}", what());
        }
    }
    fs::remove_dir_all(dir).unwrap();
}
