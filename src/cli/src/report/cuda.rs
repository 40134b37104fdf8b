//! Makes the coverage mapping of a cubin readable for llvm-cov. llvm-cov finds a mapping by the names of its sections, and
//! does not know the cubin's machine. So the mapping is copied to sections of an object file of the host.

use anyhow::Context;
use code_objects::Bytes;
use code_objects::cuda::coverage::{self, Sections};
use object::write::Object;
use object::{Architecture, BinaryFormat, Endianness, SectionKind};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The alignment at which llvm-cov reads records, in bytes.
const ALIGNMENT: u64 = 8;

/// Writes the mapping of a cubin to an object file next to it. Returns its path.
///
/// # Errors
/// The mapping is damaged, or the file cannot be written.
pub fn mapping_object(cubin: &Path) -> anyhow::Result<PathBuf> {
    let failed = || format!("coverage mapping of {}", cubin.display());
    let file = File::open(cubin).with_context(failed)?;
    let bytes = Bytes::of_file(file).with_context(failed)?;
    let sections = coverage::read(&bytes).with_context(failed)?;
    let path = cubin.with_extension("mapping.o");
    let object = object(&sections).with_context(failed)?;
    std::fs::write(&path, object).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// A relocatable ELF file for x86-64 with these sections.
fn object(sections: &Sections) -> object::write::Result<Vec<u8>> {
    let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    for (name, contents, alignment) in [
        ("__llvm_covmap", &sections.files, ALIGNMENT),
        ("__llvm_covfun", &sections.functions, ALIGNMENT),
        ("__llvm_prf_names", &sections.names, 1),
    ] {
        let kind = SectionKind::ReadOnlyData;
        let section = object.add_section(Vec::new(), name.into(), kind);
        object.set_section_data(section, contents, alignment);
    }
    object.write()
}

#[cfg(test)]
mod tests {
    use super::super::mapping;
    use super::*;

    const CUBIN: &[u8] = include_bytes!("../../../../fixtures/counted.cubin");

    #[test]
    fn the_mapping_of_a_cubin_is_copied() {
        let dir = tempfile::tempdir().unwrap();
        let cubin = dir.path().join("sm_90.0.cubin");
        std::fs::write(&cubin, CUBIN).unwrap();
        let object = std::fs::read(mapping_object(&cubin).unwrap()).unwrap();
        let functions = mapping::functions(&object).unwrap();
        let names = mapping::names(&object).unwrap();
        let mut named: Vec<&str> = functions.keys().map(|hash| names[hash].as_str()).collect();
        named.sort();
        assert_eq!(named, ["_Z6halvedj", "branch", "loop"]);
        assert!(functions.values().all(|own| !own.mapping.unused));
    }

    #[test]
    fn a_truncated_cubin_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let cubin = dir.path().join("a.cubin");
        std::fs::write(&cubin, &CUBIN[..40]).unwrap();
        let error = format!("{:#}", mapping_object(&cubin).unwrap_err());
        assert!(
            error.contains("a.cubin: ") && error.contains("ELF header"),
            "{error}"
        );
    }
}
