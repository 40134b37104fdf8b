//! `devprof report` of code objects with many functions and instances of templates, compared with llvm-cov on the same
//! code objects and profile.

use crate::measure::{TIMED, Timed, in_root, repo, target};
use clap::Args;

#[derive(Args)]
pub struct Options {
    /// Runs of each program, alternating
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Number of code objects, each with 12,500 instances of 250 templates, 1,000 other functions and 100 kernels
    #[arg(long, default_value_t = 8)]
    units: usize,
    /// Also create llvm-cov's HTML
    #[arg(long)]
    llvm_html: bool,
}

pub fn run(options: &Options) -> Result<(), String> {
    let devprof = crate::measure::devprof()?;
    let dir = target().join("bench/report");
    let script = repo().join("llvm-tests/Inputs/instances.py");
    let (dir, devprof, script) = (dir.display(), devprof.display(), script.display());
    let units = options.units;
    println!(
        "{}",
        in_root(&format!(
            "rm -rf {dir}; mkdir -p {dir}; cd {dir}
python3 {script} sources . {units} 25 10 40 50 100
compile() {{
    clang++-23 -x hip --offload-arch=gfx1100 -O1 -nogpulib -nogpuinc --offload-device-only --no-gpu-bundle-output \\
        -fprofile-instr-generate -fcoverage-mapping -Xarch_device -mllvm=--offload-pgo-sampling=0 \\
        -Xoffload-linker -zundefs $1.hip -o $1.co
    python3 {script} profile $1.co gfx1100.$1.profraw
}}
export -f compile
ls *.hip | sed s/.hip// | xargs -n1 -P$(nproc) bash -euc 'compile $0'
cat *.co | wc -c | sed 's/$/ bytes of code objects/'"
        ))?
        .trim_end()
    );
    let html = if options.llvm_html {
        "timed llvm_html llvm-cov show -format=html -instr-profile=all.profdata $objects -output-dir=shown"
    } else {
        ":"
    };
    let timed = Timed(in_root(&format!(
        "cd {dir}
{TIMED}
objects=$(printf -- ' -object %s' *.co)
for n in $(seq {}); do
    timed text {devprof} report *.co --profile 'gfx1100.*.profraw' -o text.txt
    timed html {devprof} report *.co --profile 'gfx1100.*.profraw' -o html
    timed json {devprof} report *.co --profile 'gfx1100.*.profraw' -o report.json
    timed lcov {devprof} report *.co --profile 'gfx1100.*.profraw' -o report.info
    timed merge llvm-profdata merge gfx1100.*.profraw -o all.profdata
    timed summary llvm-cov report -instr-profile=all.profdata $objects
    timed export_json llvm-cov export -instr-profile=all.profdata $objects
    timed export_lcov llvm-cov export -format=lcov -instr-profile=all.profdata $objects
    {html}
done
llvm-cov export -summary-only -instr-profile=all.profdata $objects > summary.json
python3 - <<END
import json
report = json.load(open('report.json'))
expected = json.load(open('summary.json'))['data'][0]['totals']
instances = report['functions']
actual = dict(report['device'], instantiations=dict(total=len(instances), covered=sum(one['count'] > 0 for one in instances)))
for what in ('lines', 'branches', 'functions', 'instantiations'):
    print('same', what, actual[what]['covered'], 'of', actual[what]['total'])
    assert actual[what] == dict(covered=expected[what]['covered'], total=expected[what]['count']), (what, expected[what])
END
find html -name '*.html' | wc -l | sed 's/$/ pages/'
find html -name '*.html' -printf '%s\\n' | sort -n | tail -1 | sed 's/$/ bytes in the largest page/'
du -sm html | sed 's/\\t.*/ MiB of pages/'",
        options.runs
    ))?);
    println!("| | elapsed | CPU | memory of the largest process |");
    println!("| --- | ---: | ---: | ---: |");
    let rows = [
        ("devprof, text", "text "),
        ("devprof, HTML", "html "),
        ("devprof, JSON", "json "),
        ("devprof, LCOV", "lcov "),
        ("llvm-profdata merge", "merge "),
        ("llvm-cov report", "summary "),
        ("llvm-cov export (JSON)", "export_json "),
        ("llvm-cov export (LCOV)", "export_lcov "),
        ("llvm-cov show (HTML)", "llvm_html "),
    ];
    for (title, name) in rows {
        if let Some([elapsed, cpu, memory]) = timed.medians(name.trim_end()) {
            println!("| {title} | {elapsed:.1} s | {cpu:.1} s | {memory:.0} MiB |");
        }
    }
    let is_timed = |line: &&str| rows.iter().any(|(_, name)| line.starts_with(name));
    for line in timed.0.lines().filter(|line| !is_timed(line)) {
        println!("{line}");
    }
    std::fs::remove_dir_all(target().join("bench/report"))
        .map_err(|e| format!("cannot remove {dir}: {e}"))
}
