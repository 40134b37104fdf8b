//! Which profile is read with which code objects.

use super::notes::Notes;
use super::objects::{self, Object, ObjectGroup};
use crate::merge::{Arch, Output};
use anyhow::bail;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The merged profiles of an architecture.
#[derive(Default)]
pub struct ArchProfiles {
    /// Of single code objects, by their build ID.
    pub by_build: BTreeMap<String, Output>,
    /// Of all others.
    pub others: Option<Output>,
}

impl ArchProfiles {
    /// Whether there is a profile of only this code object.
    fn has_own(&self, object: &Object) -> bool {
        let id = object.build_id.as_ref();
        id.is_some_and(|id| self.by_build.contains_key(id))
    }

    /// The profile with the counts of a code object, if it ran.
    fn of(&self, object: &Object) -> Option<&Path> {
        let own = object
            .build_id
            .as_ref()
            .and_then(|id| self.by_build.get(id));
        own.or(self.others.as_ref()).map(|output| &*output.path)
    }
}

/// A column of the report. Without profiles, its objects did not run.
fn column<'a>(
    name: &str,
    objects: Vec<&'a Object>,
    profiles: Option<&'a ArchProfiles>,
) -> ObjectGroup<'a> {
    let ids = objects.iter().filter_map(|own| own.build_id.as_ref());
    let ids: BTreeSet<&String> = ids.collect();
    let by_build = profiles.iter().flat_map(|profiles| &profiles.by_build);
    let unmatched = by_build.filter(|(id, _)| !ids.contains(id));
    ObjectGroup {
        name: name.to_owned(),
        host: false,
        ran: profiles.is_some(),
        others: profiles.and_then(|profiles| profiles.others.as_ref()),
        unmatched: unmatched.map(|(_, output)| output).collect(),
        objects: objects
            .iter()
            .map(|own| (*own, profiles.and_then(|profiles| profiles.of(own))))
            .collect(),
    }
}

/// Assigns the profiles to the code objects.
///
/// # Errors
/// There are no code objects for any of the profiles.
pub fn groups<'a>(
    objects: &'a [Object],
    hosts: &'a [Object],
    profiles: &'a BTreeMap<Arch, ArchProfiles>,
    notes: &mut Notes,
) -> anyhow::Result<Vec<ObjectGroup<'a>>> {
    let mut processors: BTreeMap<&str, Vec<&Object>> = BTreeMap::new();
    for object in objects {
        let own = processors.entry(&object.processor);
        own.or_default().push(object);
    }
    let mut groups = Vec::new();
    let mut used = BTreeSet::new();
    // Objects of other architectures that have a profile of their own, by their paths.
    let mut used_objects: BTreeSet<&Path> = BTreeSet::new();
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
        // Code for several architectures can run on a GPU: of a program for sm_90, and of Triton for sm_90a.
        let others = objects.iter().filter(|object| {
            object.processor != processor
                && objects::includes(&object.processor, name)
                && profile.has_own(object)
        });
        let others: Vec<&Object> = others.collect();
        used_objects.extend(others.iter().map(|object| &*object.path));
        let all = [&processors[processor][..], &others].concat();
        groups.push(column(name, all, Some(profile)));
    }
    let unknown = profiles.get(&Arch::Unknown);
    match (unknown, processors.len()) {
        (Some(profile), 1) if groups.is_empty() => {
            let (name, objects) = processors.pop_first().unwrap_or_default();
            used.insert(name);
            groups.push(column(name, objects, Some(profile)));
        }
        (Some(profile), 1..) => {
            groups.push(column("merged", objects.iter().collect(), Some(profile)));
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
    for (name, mut objects) in processors {
        objects.retain(|object| !used_objects.contains(&*object.path));
        if !used.contains(name) && !objects.is_empty() {
            notes.note(format!(
                "{name} did not run: there is no profile of it. The totals do not include its code."
            ));
            groups.push(column(name, objects, None));
        }
    }
    groups.sort_by(|a, b| (!a.ran, &a.name).cmp(&(!b.ran, &b.name)));
    if !hosts.is_empty() {
        let profile = profiles.get(&Arch::Host).or(unknown);
        if profile.is_none() {
            notes.loss("There is no profile of the host, so its counts are not known. The program writes it next to the device’s (NAME.profraw).");
        }
        groups.push(ObjectGroup {
            host: true,
            ..column("host", hosts.iter().collect(), profile)
        });
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use code_objects::Sampling;

    #[test]
    fn code_for_several_architectures_has_the_profile_with_its_build_id() {
        let object = |(processor, id): (&str, &str)| Object {
            path: id.into(),
            origin: id.to_owned(),
            processor: processor.to_owned(),
            build_id: Some(id.to_owned()),
            kernels: Vec::new(),
            sampling: Sampling::No,
        };
        // The objects, the build IDs of the profiles of one GPU, and the columns: the objects with a profile of their own are marked.
        for (objects, gpu, ids, expected) in [
            (
                &[("sm_90", "a"), ("sm_90a", "b"), ("sm_90a", "c")][..],
                "sm_90",
                "ab",
                "sm_90 ran: a* b*, sm_90a: c",
            ),
            (
                &[("sm_90", "a"), ("sm_90a", "b")],
                "sm_90",
                "b",
                "sm_90 ran: a b*",
            ),
            (
                &[("sm_80", "a"), ("sm_90a", "b")],
                "sm_90",
                "ab",
                "sm_90 ran: b*, sm_80: a",
            ),
            (
                &[("gfx1100", "a"), ("gfx11-generic", "b")],
                "gfx1100",
                "ab",
                "gfx1100 ran: a* b*",
            ),
            (
                &[("gfx1100", "a"), ("gfx11-generic", "b")],
                "gfx1100",
                "a",
                "gfx1100 ran: a*, gfx11-generic: b",
            ),
        ] {
            let objects: Vec<Object> = objects.iter().copied().map(object).collect();
            let output = |id: char| (id.to_string(), Output::default());
            let profile = ArchProfiles {
                by_build: ids.chars().map(output).collect(),
                others: None,
            };
            let profiles = BTreeMap::from([(Arch::Gpu(gpu.to_owned()), profile)]);
            let groups = groups(&objects, &[], &profiles, &mut Notes::default()).unwrap();
            let shown = groups.iter().map(|group| {
                let objects = group.objects.iter().map(|(object, profile)| {
                    let mark = if profile.is_some() { "*" } else { "" };
                    format!(" {}{mark}", object.origin)
                });
                let ran = if group.ran { " ran" } else { "" };
                format!("{}{ran}:{}", group.name, objects.collect::<String>())
            });
            assert_eq!(shown.collect::<Vec<_>>().join(", "), expected);
        }
    }
}
