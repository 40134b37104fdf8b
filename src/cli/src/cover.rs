//! `devprof cover`: runs a test command, and reports the coverage of all its processes. It is [`run`] and [`report`] with a
//! directory that each run replaces.

use crate::console::Console;
use crate::exit::{Outcome, usage};
use crate::paths;
use crate::report::lcov::TESTS_NAME;
use crate::report::test_database::{self, DATABASE};
use crate::report::{self, Format, Target};
use crate::run::profiles::{absolute, is_fixed};
use crate::run::{self, Request, Summary, child, recording, summary};
use crate::triton;
use anyhow::{Context, bail};
use clap::Args;
use profraw::{DEVICE_CODE, TEST_NAME, TESTS};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// The file in the directory that is locked while a run and its report use it.
const LOCK: &str = ".devprof-cover-lock";
/// The file because of which git ignores the directory. Otherwise it would be a change for `devprof affected`.
const GIT_IGNORE: (&str, &str) = (".gitignore", "*\n");

#[derive(Args)]
#[group(skip)]
#[command(override_usage = "devprof cover [OPTIONS] [--] <PROG>...")]
pub struct Options {
    /// The directory for the profiles; those of an earlier run are removed
    #[arg(long, value_name = "DIR", default_value = "devprof-cover")]
    dir: PathBuf,
    /// Keep the profiles of earlier runs, and report the coverage of all runs together
    #[arg(long)]
    append: bool,
    /// Also write which test ran which lines and kernels: tests.db in the directory, a database for `devprof affected`, and tests.info,
    /// for LCOV
    ///
    /// The tests are those of ctest, of pytest, and of programs with devprof/gtest.h, devprof/catch2.h or devprof_test(). Other
    /// processes run the test that the variable DEVPROF_TEST names.
    #[arg(long)]
    per_test: bool,
    #[command(flatten)]
    report: report::Content,
    #[command(flatten)]
    program: run::Program,
}

pub fn run(options: &Options, console: &mut Console) -> anyhow::Result<Outcome> {
    // What is not valid is reported before the program runs.
    if !is_fixed(&options.dir) {
        return Err(usage(
            "--dir cannot have %: all processes write to one directory",
        ));
    }
    let pages = options.dir.join("html/");
    let targets = targets(&options.report, &pages)?;
    for target in &targets {
        target.check()?;
    }
    let _lock = lock(&options.dir, options.append)?;
    if !options.append
        && let Err(error) = clear(&options.dir)
    {
        let _ = fs::remove_file(options.dir.join(LOCK));
        return Err(error);
    }
    hide_from_git(&options.dir)?;
    let profile = options.dir.join("%m.profraw");
    let request = Request {
        program: &options.program,
        profile: Some(profile.as_os_str()),
        own_directory: match options.append {
            true => None,
            false => Some(absolute(options.dir.as_os_str())?.into()),
        },
        coverage: true,
        per_test: options.per_test,
        trace: &recording::Options::default(),
        summary: Summary::WithoutProfiles,
    };
    let ran = run::execute(&request, console)?;
    let reported = if ran.has_profiles() {
        let profiles = paths::entries(&options.dir)?;
        let is_host = |path: &PathBuf| is_profile(path) && summary::has_host_name(path);
        let host = profiles.iter().any(is_host);
        let output = test_database::Output {
            path: &options.dir.join(DATABASE),
            listed: &ran.tests,
            is_complete: !ran.has_losses(),
        };
        let tests = options.per_test.then_some(&output);
        report::of_directory(
            &options.report,
            &options.dir,
            host,
            &targets,
            tests,
            console,
        )
    } else {
        console.error("no process wrote a profile, so there is no coverage: compile with `devprof cc --coverage` or the flags of `devprof flags --coverage`, and see `devprof inspect BINARY`; or `devprof run --trace FILE` and `devprof report BINARY --trace FILE`, which show the kernels that never ran, without instrumentation");
        Ok(Outcome::Failed)
    };
    if ran.end != child::End::Exited(0) {
        if let Err(error) = reported {
            console.error(format!("{error:#}"));
        }
        return Ok(Outcome::Program(child::end_as(ran.end)));
    }
    match reported {
        Ok(Outcome::Complete) if ran.is_incomplete() => Ok(Outcome::Incomplete),
        reported => reported,
    }
}

/// The text on stdout, and what the options name. `pages`: the directory for `--open` without another one.
fn targets<'a>(options: &'a report::Content, pages: &'a Path) -> anyhow::Result<Vec<Target<'a>>> {
    let mut targets = Vec::new();
    let output = options.output.as_deref();
    if output.is_some() || options.open || !options.format.is_empty() {
        let to = output.or(options.open.then_some(pages));
        targets.push(Target::new(&options.format, to, options.open)?);
    }
    if !targets
        .iter()
        .any(|target| matches!(target, Target::Stdout(_)))
    {
        targets.insert(0, Target::Stdout(Format::Text));
    }
    Ok(targets)
}

/// Locks the directory: runs that append may be there together, a run that replaces the profiles must be alone. A file
/// system without locks does not keep a run from starting.
///
/// # Errors
/// Another run is there, or the directory cannot be written.
fn lock(dir: &Path, is_shared: bool) -> anyhow::Result<File> {
    let path = dir.join(LOCK);
    let file = fs::create_dir_all(dir).and_then(|()| File::create(&path));
    let file = file.with_context(|| format!("cannot write {}", path.display()))?;
    let locked = match is_shared {
        true => file.try_lock_shared(),
        false => file.try_lock(),
    };
    if let Err(TryLockError::WouldBlock) = locked {
        bail!(
            "another devprof cover uses {} now: name another directory with --dir. If mpirun or srun started one for each rank: start it once, `devprof cover -- mpirun …`, or start each rank with `devprof run --profile 'DIR/%h/%m.profraw'`, and then `devprof report BINARY --profile DIR`",
            dir.display()
        );
    }
    Ok(file)
}

/// Makes git ignore the directory, unless it has files.
///
/// # Errors
/// The directory cannot be read or written.
fn hide_from_git(dir: &Path) -> anyhow::Result<()> {
    let files = paths::entries(dir)?;
    if files.iter().all(|path| path.ends_with(LOCK)) {
        let path = dir.join(GIT_IGNORE.0);
        fs::write(&path, GIT_IGNORE.1)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Removes the files of an earlier run.
///
/// # Errors
/// The directory has other files, or an earlier run has not made the directories in it.
fn clear(dir: &Path) -> anyhow::Result<()> {
    let files = paths::entries(dir)?;
    let has_run = files.iter().any(|path| has_extension(path, "runlog"));
    let is_own = |path: &PathBuf| match path.is_dir() {
        true => {
            let is_from_run = path.ends_with("html") || triton::is_cache(path);
            is_tests(path) || (has_run && is_from_run)
        }
        false => {
            is_profile(path)
                || has_extension(path, "runlog")
                || path.ends_with(".devprof-lock")
                || path.ends_with(LOCK)
                || path.ends_with(DATABASE)
                || path.ends_with(TESTS_NAME)
                || is_git_ignore(path)
                || path
                    .as_os_str()
                    .as_encoded_bytes()
                    .ends_with(DEVICE_CODE.as_bytes())
        }
    };
    if let Some(other) = files.iter().find(|path| !is_own(path)) {
        bail!(
            "{} is not a file of an earlier run: name another directory with --dir, or remove it",
            other.display()
        );
    }
    for file in files.iter().filter(|path| !path.ends_with(LOCK)) {
        let removed = match file.is_dir() {
            true => fs::remove_dir_all(file),
            false => fs::remove_file(file),
        };
        removed.with_context(|| format!("cannot remove {}", file.display()))?;
    }
    Ok(())
}

/// Whether a run has written the file.
fn is_git_ignore(path: &Path) -> bool {
    path.ends_with(GIT_IGNORE.0) && fs::read(path).is_ok_and(|text| text == GIT_IGNORE.1.as_bytes())
}

/// Whether a directory has the directories of tests, and nothing else.
fn is_tests(dir: &Path) -> bool {
    let is_test = |path: &PathBuf| path.join(TEST_NAME).exists();
    dir.ends_with(TESTS) && paths::entries(dir).is_ok_and(|all| all.iter().all(is_test))
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|own| own == extension)
}

fn is_profile(path: &Path) -> bool {
    has_extension(path, "profraw")
}
