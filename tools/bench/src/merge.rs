//! `devprof merge` of thousands of raw profiles, compared with llvm-profdata on the same files. Both must produce the same
//! profile.

use crate::measure::{TIMED, Timed, in_root, target};
use clap::Args;
use md5::{Digest, Md5};
use profraw::format::{Header, V11};
use std::fs;
use std::path::Path;

#[derive(Args)]
pub struct Options {
    /// Runs of each program, alternating
    #[arg(long, default_value_t = 9)]
    runs: usize,
    /// Number of profiles
    #[arg(long, default_value_t = 4096)]
    files: usize,
    /// Only profiles of this number of code objects, instead of a table. With 26, each rank of a program has 26 profiles
    #[arg(long)]
    objects: Option<usize>,
    /// Functions in each code object, with --objects
    #[arg(long, default_value_t = 100)]
    functions: usize,
}

/// The number of different code objects (0: one per profile), and the functions in each.
const ROWS: [(usize, usize); 4] = [(1, 20), (1, 300), (64, 100), (0, 20)];

pub fn run(options: &Options) -> Result<(), String> {
    let devprof = crate::measure::devprof()?;
    println!(
        "| {} profiles of | functions | each | llvm-profdata | devprof merge | llvm-profdata / devprof | CPU: llvm-profdata | devprof | memory: llvm-profdata | devprof |",
        options.files
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let dir = target().join("bench/merge");
    let rows = match options.objects {
        Some(objects) => vec![(objects, options.functions)],
        None => ROWS.to_vec(),
    };
    for (objects, functions) in rows {
        let objects = if objects == 0 { options.files } else { objects };
        let size = write(&dir, options.files, objects, functions)?;
        let timed = Timed(in_root(&format!(
            "cd {}
{TIMED}
for n in $(seq {}); do
    timed llvm llvm-profdata merge --input-files=list -o llvm.profdata
    timed devprof {} merge @list -o devprof.profdata
done
for which in llvm devprof; do llvm-profdata show --all-functions --counts --binary-ids $which.profdata >$which; done
cmp llvm devprof",
            dir.display(),
            options.runs,
            devprof.display()
        ))?);
        let of = |name: &str| timed.medians(name).ok_or(format!("{name} did not run"));
        let [wall, cpu, memory] = of("llvm")?;
        let [devprof_wall, devprof_cpu, devprof_memory] = of("devprof")?;
        let kind = match objects {
            1 => "one code object".to_owned(),
            _ => format!("{objects} code objects"),
        };
        println!(
            "| {kind} | {functions} | {:.1} KiB | {wall:.2} s | {devprof_wall:.2} s | {:.1} | {cpu:.2} s | {devprof_cpu:.2} s | {memory:.0} MiB | {devprof_memory:.0} MiB |",
            size as f64 / 1024.0,
            wall / devprof_wall
        );
    }
    fs::remove_dir_all(&dir).map_err(|e| format!("cannot remove {}: {e}", dir.display()))
}

/// Writes the profiles and a file with their names. Returns the size of one profile in bytes.
fn write(dir: &Path, files: usize, objects: usize, functions: usize) -> Result<usize, String> {
    let failed = |e: std::io::Error| format!("cannot write to {}: {e}", dir.display());
    if dir.exists() {
        fs::remove_dir_all(dir).map_err(failed)?;
    }
    fs::create_dir_all(dir).map_err(failed)?;
    let mut list = String::new();
    let mut size = 0;
    for n in 0..files {
        let image = profile(n % objects, functions, n as u64);
        let name = format!("gfx1100.{n}.profraw");
        size = image.len();
        fs::write(dir.join(&name), image).map_err(failed)?;
        list += &name;
        list.push('\n');
    }
    fs::write(dir.join("list"), list).map_err(failed)?;
    Ok(size)
}

/// A raw profile of a code object whose functions have one to nine counters. Equal arguments give equal bytes.
fn profile(object: usize, functions: usize, run: u64) -> Vec<u8> {
    let names: Vec<String> = (0..functions)
        .map(|n| format!("_ZN7library6object{object}10kernel_{n:05}ILi{n}EEvPKfPfi"))
        .collect();
    let text = names.join("\x01");
    let mut section = Vec::new();
    let mut length = text.len();
    while length >= 0x80 {
        section.push(length as u8 | 0x80);
        length >>= 7;
    }
    section.extend([length as u8, 0]);
    section.extend(text.bytes());
    let counts: Vec<u64> = (0..functions as u64).map(|n| 1 + n % 9).collect();
    let total: u64 = counts.iter().sum();
    let records = functions as u64 * V11.record as u64;
    let header = Header {
        version: V11.version,
        binary_ids: 16,
        num_data: functions as u64,
        num_counters: total,
        num_uniform: total,
        counters_delta: records,
        uniform_delta: records + 8 * total,
        names: section.len() as u64,
        ..Header::default()
    };
    let mut words = header.words();
    words.extend([8, object as u64]);
    let mut at = records;
    for (n, (name, count)) in names.iter().zip(&counts).enumerate() {
        let digest = Md5::digest(name.as_bytes());
        let hash = u64::from_le_bytes(digest[..8].try_into().unwrap_or_default());
        let counters = at - n as u64 * V11.record as u64;
        // Name, hash, counters, uniform counters, bitmap, function, values, number of counters, wave size.
        words.extend([
            hash,
            0x1234 + n as u64,
            counters,
            counters + 8 * total,
            0,
            0,
            0,
            *count,
            32 << 16,
        ]);
        at += 8 * count;
    }
    words.extend((0..total).map(|n| n * 31 + run));
    words.extend((0..total).map(|n| n * 31 / 2));
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend(section);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}
