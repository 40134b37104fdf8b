//! Trace files that are damaged at every used byte in several ways, and truncated in the header and in every record. The complete
//! command line runs in this process. Damage must be reported with its offset and change the exit status, and all other records must
//! be exported.

use crate::files::*;
use crate::records::one_of_each;
use clap::Parser;
use devprof_cli::{Cli, Colors, Console};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use tracefile::format::{
    COUNTERS, Count, Counter, HEADER_SIZE, RECORD_SIZE, Record, checksum, flag,
};

/// A file with few records: two kernels with one dispatch each, the API call that launched them, and one record of each
/// other type.
fn small() -> Vec<u8> {
    let mut records = definitions();
    records.extend(one_of_each());
    records.push(call(1, 7, 10, 1500, 1700).seal());
    records.push(timed(dispatch(1, 0, 1, 1, 1), 1600, 2000, 3000).seal());
    records.push(timed(dispatch(2, flag::CLOCK_AGENT, 3, 2, 1), 1600, 2000, 3000).seal());
    file(&records)
}

/// The last records of [`small`].
const CALLS: usize = 1;
const DISPATCHES: usize = 2;

/// The results of a run of devprof.
struct Completed {
    status: u8,
    stderr: String,
    /// The file that `export` wrote, or the text that `stats` printed.
    output: Vec<u8>,
}

impl Completed {
    /// For messages: the command, the status and stderr.
    fn describe(&self, damage: String, command: &[&str]) -> String {
        let Completed { status, stderr, .. } = self;
        format!("{damage}, {command:?}, status {status}:\n{stderr}")
    }
}

/// The offsets of the used part of the header, of some bytes in the rest of its page, and of the records.
fn used(file: &[u8]) -> impl Iterator<Item = usize> {
    let unused = (COUNTERS + 128..HEADER_SIZE).step_by(101);
    (0..COUNTERS + 128)
        .chain(unused)
        .chain(HEADER_SIZE..file.len())
}

type Command = &'static [&'static str];

/// Runs commands on files in a directory of its own. Their command lines are parsed once: that takes longer than most commands.
struct Runs {
    dir: PathBuf,
    command_lines: HashMap<Command, Cli>,
}

impl Runs {
    /// The directory is in memory, if possible, because tens of thousands of files are written.
    fn new(name: &str) -> Runs {
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() {
            memory.join(format!("devprof-{name}-{}", std::process::id()))
        } else {
            directory(name)
        };
        fs::create_dir_all(&dir).unwrap();
        Runs {
            dir,
            command_lines: HashMap::new(),
        }
    }

    /// Runs a command on a file with these bytes.
    fn run(&mut self, command: Command, bytes: &[u8]) -> Completed {
        let (file, out) = (self.dir.join("a.trace"), self.dir.join("out.xplane.pb"));
        fs::write(&file, bytes).unwrap();
        let command_line = self.command_lines.entry(command).or_insert_with(|| {
            let to: &[&str] = match command[0] {
                "export" => &["-o", out.to_str().unwrap()],
                _ => &[],
            };
            let file = file.to_str().unwrap();
            Cli::parse_from(["devprof"].iter().chain(command).chain(to).chain([&file]))
        });
        let (mut printed, mut stderr) = (Vec::new(), Vec::new());
        let mut console = Console {
            out: &mut printed,
            err: &mut stderr,
            colors: Colors::default(),
        };
        let status = devprof_cli::run(command_line, &mut console);
        let output = match fs::read(&out) {
            Ok(written) => {
                fs::remove_file(&out).unwrap();
                written
            }
            Err(_) => printed,
        };
        Completed {
            status,
            stderr: String::from_utf8(stderr).unwrap(),
            output,
        }
    }

    fn remove(self) {
        fs::remove_dir_all(self.dir).unwrap();
    }
}

/// Commands that take little time.
const FAST: [Command; 5] = [
    &["export", "-f", "json"],
    &["export", "-f", "csv"],
    &["export", "-f", "perfetto"],
    &["export", "-f", "xplane"],
    &["stats", "--json"],
];
const DATABASE: Command = &["export", "-f", "rocpd"];
const COPIES: Command = &["export", "-f", "csv", "--csv-of", "copies"];
const MARKERS: Command = &["export", "-f", "csv", "--csv-of", "markers"];

/// Formats that are a protobuf message whose field 1 (0x0a) is repeated.
const PROTOBUF: [&str; 2] = ["perfetto", "xplane"];

/// The number of packets in a Perfetto trace, or of planes in a profile, each with its length.
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

/// The numbers of dispatches and API calls in the output, if the format allows counting them.
fn exported(command: &[&str], run: &Completed) -> (Option<usize>, Option<usize>) {
    let text = || std::str::from_utf8(&run.output).unwrap();
    match *command.last().unwrap() {
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

/// Checks the results for a file with one damaged byte.
fn check(valid: &[u8], at: usize, command: &[&str], run: &Completed) {
    let what = run.describe(format!("byte {at}"), command);
    let records = (valid.len() - HEADER_SIZE) / RECORD_SIZE;
    let counters = COUNTERS..COUNTERS + Count::ALL.len() * size_of::<Counter>();
    // The exit status, the reported offset, and the record that is lost.
    let (status, message, lost) = match at {
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
            let start = HEADER_SIZE + record * RECORD_SIZE;
            (3, format!("byte {start}: a damaged record"), Some(record))
        }
    };
    assert_eq!(run.status, status, "{what}");
    assert!(run.stderr.contains(&message), "{what}");
    if status == 0 {
        assert_eq!(run.stderr, "", "{what}");
    } else {
        let lines = run.stderr.lines();
        assert!(
            lines.clone().all(|line| line.contains("a.trace: ")),
            "{what}"
        );
        // The damage is reported first. If it is in a part of a name, the parts that follow are lost, too.
        let offsets: Vec<_> = lines.filter(|line| line.contains(": byte ")).collect();
        assert!(offsets.len() <= 3, "{what}");
        assert!(
            offsets.iter().take(1).all(|first| first.contains(&message)),
            "{what}"
        );
    }
    if status == 1 {
        assert!(run.output.is_empty(), "{what}");
        return;
    }
    let kept = |all: usize, first: usize| {
        all - usize::from(lost.is_some_and(|lost| (first..first + all).contains(&lost)))
    };
    let (dispatches, calls) = exported(command, run);
    if let Some(dispatches) = dispatches {
        assert_eq!(dispatches, kept(DISPATCHES, records - DISPATCHES), "{what}");
    }
    if let Some(calls) = calls {
        let first = records - DISPATCHES - CALLS;
        assert_eq!(calls, kept(CALLS, first), "{what}");
    }
    if PROTOBUF.contains(command.last().unwrap()) {
        assert!(packets(&run.output) > 1, "{what}");
    }
}

#[test]
fn each_damaged_byte_is_reported_with_its_offset_and_the_rest_is_exported() {
    let mut runs = Runs::new("damage");
    let valid = small();
    for command in FAST {
        let run = runs.run(command, &valid);
        assert_eq!((run.status, &*run.stderr), (0, ""), "{command:?}");
    }
    for at in used(&valid) {
        // Each of the file's bytes is damaged for one of the commands, its neighbours for others, with other damage.
        let n = at % FAST.len();
        let mut bytes = valid.clone();
        bytes[at] ^= [0x01, 0x80, 0xff][(at + n) % 3];
        check(&valid, at, FAST[n], &runs.run(FAST[n], &bytes));
    }
    runs.remove();
}

#[test]
fn damage_is_reported_when_exporting_to_a_database() {
    let mut runs = Runs::new("damage-db");
    let valid = small();
    // Databases take longer, so only every tenth byte of the header and one of each record is tested, each at another offset.
    let header = (0..COUNTERS + 128).step_by(10);
    for at in header.chain((HEADER_SIZE..valid.len()).step_by(RECORD_SIZE - 1)) {
        let mut bytes = valid.clone();
        bytes[at] ^= 0x40;
        check(&valid, at, DATABASE, &runs.run(DATABASE, &bytes));
    }
    runs.remove();
}

/// Corrects the checksums of a file.
fn seal(bytes: &mut [u8]) {
    let crc = crc32fast::hash(&bytes[..COUNTERS - 4]).to_le_bytes();
    bytes[COUNTERS - 4..COUNTERS].copy_from_slice(&crc);
    for record in bytes[HEADER_SIZE..].chunks_exact_mut(RECORD_SIZE) {
        let crc = checksum(record).to_le_bytes();
        record[..4].copy_from_slice(&crc);
    }
}

#[test]
fn any_value_in_a_valid_record_can_be_exported() {
    let mut runs = Runs::new("values");
    let valid = small();
    let header = 12..COUNTERS;
    for at in header.chain(HEADER_SIZE..valid.len()) {
        // Each command for one byte of each word, and for another one of the next word.
        let mut commands: Vec<_> = FAST.into_iter().enumerate().collect();
        commands.retain(|(n, _)| (n + at / 4) % 4 == at % 4);
        if at % 11 == 0 {
            commands.extend([(5, DATABASE), (6, COPIES), (7, MARKERS)]);
        }
        for (n, command) in commands {
            let mut bytes = valid.clone();
            bytes[at] ^= [0x01, 0x80, 0xff][(at + n) % 3];
            seal(&mut bytes);
            let run = runs.run(command, &bytes);
            let what = run.describe(format!("byte {at}"), command);
            // With other sizes in the header, or a clock frequency of 0, the file cannot be read.
            let refused = at < COUNTERS && run.status == 1;
            assert!(matches!(run.status, 0 | 3) || refused, "{what}");
            assert!(
                run.stderr.lines().all(|line| line.contains("a.trace: ")),
                "{what}"
            );
            if PROTOBUF.contains(command.last().unwrap()) && !refused {
                assert!(packets(&run.output) > 1, "{what}");
            }
        }
    }
    runs.remove();
}

#[test]
fn truncation_is_reported_with_its_offset_and_the_rest_is_exported() {
    let mut runs = Runs::new("cut");
    let valid = small();
    let records = (valid.len() - HEADER_SIZE) / RECORD_SIZE;
    // Readers distinguish complete records.
    let lengths = used(&valid).filter(|&length| {
        length < HEADER_SIZE
            || [0, 1, RECORD_SIZE / 2, RECORD_SIZE - 1].contains(&(length % RECORD_SIZE))
    });
    for (n, length) in lengths.enumerate() {
        let command = FAST[n % FAST.len()];
        let run = runs.run(command, &valid[..length]);
        let what = run.describe(format!("{length} bytes"), command);
        if length < HEADER_SIZE {
            assert_eq!(run.status, 1, "{what}");
            let message = match length {
                0..8 => "it does not begin with \"DEVPROFT\"".to_owned(),
                _ => format!("the file is truncated after {length} bytes, inside its header"),
            };
            assert!(run.stderr.contains(&message), "{what}");
            assert!(run.output.is_empty(), "{what}");
            continue;
        }
        let left = (length - HEADER_SIZE) / RECORD_SIZE;
        let message = format!(
            "byte {}: the file is truncated: {} of {records} records are missing",
            HEADER_SIZE + left * RECORD_SIZE,
            records - left
        );
        assert_eq!(run.status, 3, "{what}");
        assert!(run.stderr.contains(&message), "{what}");
        let first = records - DISPATCHES;
        if let (Some(dispatches), _) = exported(command, &run) {
            assert_eq!(dispatches, left.saturating_sub(first), "{what}");
        }
    }
    runs.remove();
}
