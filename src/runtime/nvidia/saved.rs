//! Keeps code that exists only in this process, because devprof has instrumented it here: `devprof report` finds its coverage mapping
//! in a file next to the profiles.

#![forbid(unsafe_code)]

use super::image::Image;
use crate::output::atomic_file;
use crate::output::profile_files;
use crate::support::diagnostics;
use crate::support::settings::settings;
use crate::support::sync::lock;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// Saves a cubin, once, if its image is only in this process.
pub fn save(image: &Image, cubin: &[u8]) {
    static SAVED: Mutex<BTreeSet<[u8; 16]>> = Mutex::new(BTreeSet::new());
    if !image.is_of_process || !lock(&SAVED).insert(image.id) {
        return;
    }
    let Some(directory) = profile_files::directory(settings()) else {
        return;
    };
    let name = format!(
        "{}.{}{}",
        image.arch,
        profraw::hex(&image.id),
        profraw::DEVICE_CODE
    );
    if let Err(error) = atomic_file::write(&directory.join(name), cubin) {
        diagnostics::lost(format_args!(
            "no report can show the PTX that was instrumented in the process: {error}"
        ));
    }
}
