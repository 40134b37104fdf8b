//! `devprof inspect` and `devprof extract` of Debian's rocRAND and RCCL, compared with LLVM's tools and with the minimum:
//! to read the file and unpack the compressed bundle in it.

use crate::measure::{TIMED, Timed, in_root, target};
use clap::Args;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Options {
    /// Runs of each program, alternating
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

#[derive(Args)]
pub struct UnpackOptions {
    file: PathBuf,
    /// Where to write the contents
    output: Option<PathBuf>,
}

/// Reads a file. If it contains a compressed offload bundle, unpacks that.
pub fn unpack(options: &UnpackOptions) -> Result<(), String> {
    let failed = |e: io::Error| format!("{}: {e}", options.file.display());
    let mut to: Box<dyn Write> = match &options.output {
        Some(path) => Box::new(File::create(path).map_err(failed)?),
        None => Box::new(io::sink()),
    };
    let mut file = File::open(&options.file).map_err(failed)?;
    let bundle = find_bundle(&mut file).map_err(failed)?;
    file.rewind().map_err(failed)?;
    let mut input = BufReader::with_capacity(1 << 20, file);
    let mut buffer = vec![0; 1 << 20];
    let mut copy = |from: &mut dyn Read, to: &mut dyn Write| -> io::Result<()> {
        loop {
            match from.read(&mut buffer)? {
                0 => return Ok(()),
                n => to.write_all(&buffer[..n])?,
            }
        }
    };
    match bundle {
        None => copy(&mut input, &mut to).map_err(failed),
        Some(at) => {
            // Also reads what precedes and follows the bundle.
            copy(&mut input.by_ref().take(at), &mut io::sink()).map_err(failed)?;
            let decoder = zstd::stream::read::Decoder::with_buffer(input).map_err(failed)?;
            let mut decoder = decoder.single_frame();
            copy(&mut decoder, &mut to).map_err(failed)?;
            copy(&mut decoder.finish(), &mut io::sink()).map_err(failed)
        }
    }
}

/// The offset of the zstd frame of a compressed bundle, which begins at a page boundary.
fn find_bundle(file: &mut File) -> io::Result<Option<u64>> {
    let size = file.seek(SeekFrom::End(0))?;
    let mut head = [0; 8];
    for at in (0..size.saturating_sub(32)).step_by(4096) {
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut head)?;
        if head == *b"CCOB\x03\0\x01\0" {
            return Ok(Some(at + 32));
        }
    }
    Ok(None)
}

pub fn run(options: &Options) -> Result<(), String> {
    let devprof = crate::measure::devprof()?;
    let bench = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
    println!(
        "| | read and unpack | devprof | devprof / read and unpack | llvm-objdump --offloading | clang-offload-bundler | memory: read and unpack | devprof | llvm-objdump | clang-offload-bundler |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let dir = target().join("bench/objects");
    for (library, bundler) in [("librocrand.so.1", false), ("librccl.so.1", true)] {
        let timed = Timed(in_root(&script(
            &dir,
            library,
            bundler,
            options.runs,
            &bench,
            &devprof,
        ))?);
        let seconds = |name: &str| {
            let medians = timed.medians(name);
            medians.map_or("–".into(), |[s, ..]| format!("{s:.2} s"))
        };
        let memory = |name: &str| {
            let medians = timed.medians(name);
            medians.map_or("–".into(), |[.., mib]| format!("{mib:.0} MiB"))
        };
        // Of LLVM's tools, only the bundler can list the contents without writing them.
        for [verb, minimum, objdump, bundler] in [
            ["inspect", "read", "none", "list"],
            ["extract", "unpack", "objdump", "unbundle"],
        ] {
            let (Some([own, ..]), Some([least, ..])) =
                (timed.medians(verb), timed.medians(minimum))
            else {
                return Err(format!("the runs printed\n{}", timed.0));
            };
            let programs = [minimum, verb, objdump, bundler];
            let [read, devprof, llvm, unbundle] = programs.map(seconds);
            let ratio = own / least;
            println!(
                "| {verb} {library} | {read} | {devprof} | {ratio:.2} | {llvm} | {unbundle} | {} |",
                programs.map(memory).join(" | ")
            );
        }
    }
    std::fs::remove_dir_all(&dir).map_err(|e| format!("cannot remove {}: {e}", dir.display()))
}

fn script(
    dir: &Path,
    library: &str,
    bundler: bool,
    runs: usize,
    bench: &Path,
    devprof: &Path,
) -> String {
    let (dir, bench, devprof) = (dir.display(), bench.display(), devprof.display());
    let targets = "gfx1030 gfx1100 gfx1101 gfx1200 gfx1201 gfx908 gfx90a gfx942 gfx950";
    let bundler = if bundler {
        format!(
            "timed list clang-offload-bundler --list --type=o --input=bundle
    ids=; outs=
    for t in {targets}; do ids=$ids,hipv4-amdgcn-amd-amdhsa--$t; outs=\"$outs --output=out/$t\"; done
    timed unbundle clang-offload-bundler --unbundle --type=o --input=bundle --targets=${{ids#,}} $outs"
        )
    } else {
        ":".into()
    };
    format!(
        "rm -rf {dir}; mkdir -p {dir}; cd {dir}
so=/usr/lib/x86_64-linux-gnu/{library}
{TIMED}
llvm-objcopy -O binary --only-section=.hip_fatbin $so bundle
cat $so bundle >/dev/null
for n in $(seq {runs}); do
    timed read {bench} unpack $so
    timed inspect {devprof} inspect $so
    timed unpack {bench} unpack $so written
    rm written
    timed extract {devprof} extract $so -o out
    rm -r out; mkdir out; ln -s $so out/lib.so; cd out
    timed objdump llvm-objdump --offloading lib.so; cd ..
    rm -r out; mkdir out
    {bundler}
    rm -rf out
done"
    )
}
