//! Whether a library can be preloaded into a program at all.

use goblin::elf::header::{ELFCLASS64, EM_AARCH64, EM_X86_64};
use goblin::elf::{Elf, program_header::PT_INTERP};
use rustix::fs::getxattr;
use rustix::process::{getgid, getuid};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How much of an executable is read: its headers are at the start.
const HEADERS: u64 = 64 << 10;

/// The processor of the programs that can load devprof's library.
const MACHINE: u16 = if cfg!(target_arch = "aarch64") {
    EM_AARCH64
} else {
    EM_X86_64
};

/// The reason why the program cannot preload a library, if there is one.
pub fn obstacle(program: &Path) -> Option<String> {
    let data = fs::metadata(program).ok()?;
    let name = program.display();
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let as_user = data.mode() & 0o4000 != 0 && data.uid() != user;
    let as_group = data.mode() & 0o2000 != 0 && data.gid() != group;
    if as_user || as_group || has_capabilities(program) {
        return Some(format!(
            "{name} runs with more privileges than its caller (set-user-ID, set-group-ID or capabilities), so the dynamic linker ignores LD_PRELOAD; run a copy without these privileges, or link devprof into the program"
        ));
    }
    let mut start = Vec::new();
    File::open(program)
        .ok()?
        .take(HEADERS)
        .read_to_end(&mut start)
        .ok()?;
    if !start.starts_with(b"\x7fELF") {
        return None;
    }
    let header = Elf::parse_header(&start).ok()?;
    if header.e_ident[4] != ELFCLASS64 || header.e_machine != MACHINE {
        return Some(format!(
            "{name} is not a 64-bit program for {} processors, so it cannot load libdevprof.so",
            std::env::consts::ARCH
        ));
    }
    let headers = goblin::elf::ProgramHeader::parse(
        &start,
        usize::try_from(header.e_phoff).ok()?,
        header.e_phnum.into(),
        goblin::container::Ctx::new(
            goblin::container::Container::Big,
            goblin::container::Endian::Little,
        ),
    );
    let is_dynamic = headers
        .ok()?
        .iter()
        .any(|header| header.p_type == PT_INTERP);
    (!is_dynamic).then(|| {
        format!(
            "{name} is statically linked, so it cannot load libdevprof.so (programs that it starts can); link devprof into it, or link it dynamically"
        )
    })
}

/// Whether the file has capabilities (`setcap`) that its caller does not have. Root has them all.
fn has_capabilities(program: &Path) -> bool {
    let mut none = [0u8; 0];
    let size = getxattr(program, "security.capability", &mut none);
    size.is_ok_and(|size| size > 0) && !getuid().is_root()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_for_another_processor_cannot_load_the_library() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(obstacle(&own), None);

        let directory = tempfile::tempdir().unwrap();
        let other = directory.path().join("other");
        let mut start = fs::read(&own).unwrap();
        start.truncate(usize::try_from(HEADERS).unwrap());
        start[18..20].copy_from_slice(&goblin::elf::header::EM_RISCV.to_le_bytes());
        fs::write(&other, start).unwrap();
        let reason = obstacle(&other).unwrap();
        assert!(
            reason.contains("other is not a 64-bit program for"),
            "{reason}"
        );
    }
}
