//! What can be told of a program before it starts: whether a library can be loaded beside it at all.

use goblin::elf::header::{ELFCLASS64, EM_X86_64};
use goblin::elf::{Elf, program_header::PT_INTERP};
use rustix::fs::getxattr;
use rustix::process::{getgid, getuid};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The headers of an executable are in its beginning.
const BEGINNING: u64 = 64 << 10;

/// Why no library can be loaded beside the program, if there is a reason.
pub fn hindrance(program: &Path) -> Option<String> {
    let data = fs::metadata(program).ok()?;
    let name = program.display();
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let as_user = data.mode() & 0o4000 != 0 && data.uid() != user;
    let as_group = data.mode() & 0o2000 != 0 && data.gid() != group;
    if as_user || as_group || has_capabilities(program) {
        return Some(format!(
            "{name} runs with rights that its caller has not (set-user-id, set-group-id, capabilities): such a program loads no library that the environment names; run a copy without these rights, or link devprof in"
        ));
    }
    let mut start = Vec::new();
    File::open(program)
        .ok()?
        .take(BEGINNING)
        .read_to_end(&mut start)
        .ok()?;
    if !start.starts_with(b"\x7fELF") {
        return None;
    }
    let header = Elf::parse_header(&start).ok()?;
    if header.e_ident[4] != ELFCLASS64 || header.e_machine != EM_X86_64 {
        return Some(format!(
            "{name} is for another machine than x86-64, for which libdevprof.so is: it cannot be loaded beside it"
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
            "{name} is statically linked: no library can be loaded beside it, only beside programs that it starts; link devprof in, or link it dynamically"
        )
    })
}

/// File capabilities, as `setcap` gives them. To root they give nothing.
fn has_capabilities(program: &Path) -> bool {
    let mut none = [0u8; 0];
    let size = getxattr(program, "security.capability", &mut none);
    size.is_ok_and(|size| size > 0) && !getuid().is_root()
}
