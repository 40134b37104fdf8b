//! `ROCR_VISIBLE_DEVICES`: which GPUs a process sees, and in which order. As in ROCr's `RvdFilter`.

use std::ffi::CString;

/// The numbers of the visible GPUs, in the order in which they are agents. `uuids`: of all GPUs of the machine.
///
/// An entry is the number of a GPU, as `strtol` reads it, or the start of the UUID of exactly one GPU. The first entry that
/// is neither, or that names a GPU again, ends the list. An empty value hides all GPUs.
pub fn visible(value: &str, uuids: &[String]) -> Result<Vec<usize>, String> {
    let mut visible = Vec::new();
    // As in ROCr, a comma at the end does not start another entry.
    let entries = value.strip_suffix(',').unwrap_or(value).split(',');
    for entry in entries.filter(|_| !value.is_empty()).take(uuids.len()) {
        let entry = entry.trim_ascii().to_ascii_uppercase();
        let found = match entry.bytes().next() {
            // ROCr ends the process.
            None => return Err("an entry is empty".into()),
            Some(b'G') => with_uuid(&entry, uuids),
            Some(_) => number(&entry).filter(|&number| number < uuids.len()),
        };
        match found {
            Some(number) if !visible.contains(&number) => visible.push(number),
            _ => break,
        }
    }
    Ok(visible)
}

/// The GPU whose UUID starts with an entry.
fn with_uuid(entry: &str, uuids: &[String]) -> Option<usize> {
    let starts = |uuid: &String| uuid.to_ascii_uppercase().starts_with(entry);
    let mut found = (0..uuids.len()).filter(|&number| starts(&uuids[number]));
    // Not only `GPU-`.
    let first = found.next().filter(|_| entry.len() >= 5);
    first.filter(|_| found.next().is_none())
}

/// The number of a GPU: decimal, octal or hexadecimal.
fn number(entry: &str) -> Option<usize> {
    let text = CString::new(entry).ok()?;
    let mut end = std::ptr::null_mut();
    // SAFETY: a C string. strtol sets `end` to an address in it.
    let (number, rest) = unsafe {
        let number = libc::strtol(text.as_ptr(), &mut end, 0);
        (number, *end)
    };
    // ROCr has the number in an int.
    usize::try_from(number as i32).ok().filter(|_| rest == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_select_gpus_as_in_rocr() {
        let uuids: Vec<_> = (0x19..0x1d).map(|n| format!("GPU-{n:016x}")).collect();
        let visible = |value: &str| visible(value, &uuids);
        // The values whose result has at most one GPU were also tested on ROCr 7.2.4.
        for (value, expected) in [
            ("0", &[0][..]),
            ("2,0", &[2, 0]),
            (" 3 ,\t1", &[3, 1]),
            ("3,2,1,0", &[3, 2, 1, 0]),
            ("0x1,02", &[1, 2]),
            ("010", &[]),
            ("+1", &[1]),
            ("4294967296", &[0]),
            ("", &[]),
            ("-1", &[]),
            ("4", &[]),
            ("1,4,2", &[1]),
            ("1,x,2", &[1]),
            ("1,2x,3", &[1]),
            ("1,1,2", &[1]),
            ("2,", &[2]),
            // Only as many entries as there are GPUs are read.
            ("0,1,2,3,,", &[0, 1, 2, 3]),
            ("GPU-000000000000001a", &[1]),
            ("gpu-000000000000001C,0", &[3, 0]),
            // Several GPUs match, or none, or the entry is too long.
            ("GPU-0000", &[]),
            ("G", &[]),
            ("GPU-", &[]),
            ("GPU-00000000000000ff", &[]),
            ("GPU-000000000000001a0", &[]),
            ("1,GPU-000000000000001a,2", &[1]),
        ] {
            assert_eq!(visible(value).as_deref(), Ok(expected), "{value:?}");
        }
        for value in [",", "0,,1", " ", "1, ,2"] {
            assert!(visible(value).is_err(), "{value:?}");
        }
        // One GPU: a short UUID is unique, but ROCr expects five characters.
        let one = &uuids[..1];
        assert_eq!(super::visible("GPU-0", one), Ok(vec![0]));
        assert_eq!(super::visible("GPU-", one), Ok(vec![]));
        assert_eq!(super::visible("0,,", one), Ok(vec![0]));
    }
}
