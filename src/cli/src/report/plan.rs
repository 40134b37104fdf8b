//! Which profile is read with which code objects.

use super::notes::Notes;
use super::objects::{self, Object, ObjectGroup};
use crate::merge::Arch;
use anyhow::bail;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Assigns the profiles to the code objects.
///
/// # Errors
/// There are no code objects for any of the profiles.
pub fn groups<'a>(
    objects: &'a [Object],
    hosts: &'a [Object],
    profiles: &'a BTreeMap<Arch, PathBuf>,
    notes: &mut Notes,
) -> anyhow::Result<Vec<ObjectGroup<'a>>> {
    let device = |name: &str, objects: Vec<&'a Object>, profile| ObjectGroup {
        name: name.to_owned(),
        host: false,
        objects,
        profile,
    };
    let mut processors: BTreeMap<&str, Vec<&Object>> = BTreeMap::new();
    for object in objects {
        let own = processors.entry(&object.processor);
        own.or_default().push(object);
    }
    let mut groups = Vec::new();
    let mut used = BTreeSet::new();
    for (arch, profile) in profiles {
        let Arch::Gpu(name) = arch else { continue };
        // A GPU prefers code objects for its own architecture to those for its family, and those for the newest GPU of it.
        let mut families = processors.keys().copied();
        let own = processors.contains_key(name.as_str()).then_some(&**name);
        let family = || families.rfind(|family| objects::includes(family, name));
        let Some(processor) = own.or_else(family) else {
            notes.loss(format!(
                "The profile of {name} is left out: the binaries have no code object for it."
            ));
            continue;
        };
        used.insert(processor);
        groups.push(device(name, processors[processor].clone(), Some(profile)));
    }
    let unknown = profiles.get(&Arch::Unknown);
    match (unknown, processors.len()) {
        (Some(profile), 1) if groups.is_empty() => {
            let (name, objects) = processors.pop_first().unwrap_or_default();
            used.insert(name);
            groups.push(device(name, objects, Some(profile)));
        }
        (Some(profile), 1..) => {
            groups.push(device("merged", objects.iter().collect(), Some(profile)));
            used.extend(processors.keys());
            notes.warning("The merged profile does not distinguish architectures: its counts are shown as “merged”, for all architectures together.");
        }
        _ => {}
    }
    if unknown.is_some() {
        notes.note("A merged profile does not distinguish device and host: if they have a function of the same name, the device’s counts may include the host’s. Raw profiles keep them apart.");
    }
    if groups.is_empty() && hosts.is_empty() {
        let of: Vec<String> = profiles.keys().map(Arch::to_string).collect();
        let present: Vec<&str> = processors.keys().copied().collect();
        bail!(
            "the profiles are of {}, but the code objects are for {}: name the profiles that the runtime wrote for these (ARCH.NAME.profraw)",
            of.join(", "),
            present.join(", ")
        );
    }
    for (name, objects) in processors {
        if !used.contains(name) {
            notes.note(format!(
                "{name} did not run: there is no profile of it. The totals do not include its code."
            ));
            groups.push(device(name, objects, None));
        }
    }
    groups.sort_by(|a, b| (a.profile.is_none(), &a.name).cmp(&(b.profile.is_none(), &b.name)));
    if !hosts.is_empty() {
        let profile = profiles.get(&Arch::Host).or(unknown);
        if profile.is_none() {
            notes.loss("There is no profile of the host, so its counts are not known. The program writes it next to the device’s (NAME.profraw).");
        }
        groups.push(ObjectGroup {
            name: "host".to_owned(),
            host: true,
            objects: hosts.iter().collect(),
            profile,
        });
    }
    Ok(groups)
}
